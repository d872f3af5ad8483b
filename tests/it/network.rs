//! The way to the endpoint: every address of its host, the proxies of the environment, and TLS.

use std::cell::RefCell;
use std::io;
use std::io::Write as _;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rcgen::date_time_ymd;
use serde_json::{Value, json};
use uncut::openai::{OpenAi, Settings};
use uncut::outcome::Outcome;
use uncut::provider::{Completion, Notice, Notify, ProviderError};
use uncut::proxy::Proxy;

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::proxy;
use crate::support::sandbox::{Dir, Uncut};
use crate::support::server::{Refusing, Server, Silent, drain};
use crate::support::tls::{self, Identity, Issuer};
use crate::wire::{SHORT, ask, ask_again, check_transport, settings};

fn run(dir: &Dir, base_url: &str) -> Uncut {
    Uncut::new(dir).args(["--base-url", base_url, "--model", "m", "go"])
}

// Addresses.

#[test]
fn a_server_on_the_second_address_of_a_host_is_found() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("not tried: this machine has no IPv6");
        return;
    };
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::on(listener, vec![Reply::answer("a"), Reply::answer("b")]);
    ask(settings(&format!("http://localhost:{}/v1", address.port()))).unwrap();
    ask(settings(&format!("http://{address}/v1"))).unwrap();
    endpoint.finish();
}

/// One port on 127.0.0.1 and on `[::1]`, where the machine has that.
fn refusing_on_both() -> (Refusing, Option<Refusing>) {
    loop {
        let refusing = Refusing::start();
        match TcpListener::bind(("::1", refusing.address().port())) {
            Ok(listener) => return (refusing, Some(Refusing::on(listener))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(_) => return (refusing, None),
        }
    }
}

#[test]
fn every_address_that_failed_is_named_with_its_own_error() {
    let (refusing, _other) = refusing_on_both();
    let port = refusing.address().port();
    let error = ask(settings(&format!("http://localhost:{port}/v1"))).unwrap_err();
    check_transport(&error, &format!("127.0.0.1:{port}: Connection refused"));
    check_transport(&error, &format!("; [::1]:{port}: "));
}

/// An endpoint on `[::1]` whose port is silent on 127.0.0.1, which is tried first.
fn half_silent(replies: Vec<Reply>) -> Option<(Silent, Endpoint)> {
    for _ in 0..20 {
        let Ok(listener) = TcpListener::bind("[::1]:0") else {
            eprintln!("not tried: this machine has no IPv6");
            return None;
        };
        let port = listener.local_addr().unwrap().port();
        // Somebody else may have that port.
        if let Ok(silent) = TcpListener::bind(("127.0.0.1", port)) {
            return Some((Silent::on(silent), Endpoint::on(listener, replies)));
        }
    }
    panic!("no port is free on both addresses");
}

#[test]
fn an_address_that_does_not_answer_costs_time_once() {
    let close = |reply: Reply| reply.hung_up();
    let answers = ["a", "b", "c"].map(|text| close(Reply::answer(text)));
    let Some((silent, endpoint)) = half_silent(answers.into()) else { return };
    let port = silent.address().port();
    let base_url = format!("http://localhost:{port}/v1");
    let settings = Settings { idle_timeout: Some(Duration::from_secs(2)), ..settings(&base_url) };
    let mut openai = OpenAi::new(settings).unwrap();
    let told = RefCell::new(Vec::new());
    let notify = |notice: &Notice<'_>| told.borrow_mut().push(format!("{notice:?}"));
    for (count, skipped) in [vec![silent.address()], vec![], vec![]].into_iter().enumerate() {
        ask_again(&mut openai, Notify(&notify)).unwrap();
        let progress = openai.progress();
        assert!(progress.opened, "{progress:?}");
        assert_eq!(progress.silent, skipped, "request {count}");
    }
    let told = told.into_inner();
    assert!(told.len() == 1 && told[0].starts_with("Silent"), "{told:?}");
    endpoint.finish();
}

#[test]
fn a_run_warns_once_of_an_address_that_does_not_answer() {
    let call = Reply::tool_call("a", "shell", r#"{"command":"true"}"#).hung_up();
    let Some((silent, endpoint)) = half_silent(vec![call, Reply::answer("hi")]) else { return };
    let (address, dir) = (silent.address(), Dir::new("silent-address"));
    let base_url = format!("http://localhost:{}/v1", address.port());
    let ran = run(&dir, &base_url).args(["--idle-timeout=2s", "--output=json"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning =
        format!("no answer from {address}; from now on [::1]:{} is tried first", address.port());
    assert_eq!(ran.stderr.matches(&format!("warning: {warning}\n")).count(), 1, "{ran:?}");
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["warnings"], json!([warning]), "{ran:?}");
    endpoint.finish();
}

// Proxies.

/// The settings for a base URL, with the proxy that the variable names.
fn proxied(base_url: &str, variable: &str, url: &str) -> Settings {
    let mut settings = settings(base_url);
    let env = |name: &str| (name == variable).then(|| url.into());
    let (https, port) = (settings.endpoint.is_https(), settings.endpoint.port());
    settings.proxy = Proxy::from_env(&env, https, settings.endpoint.host(), port).unwrap();
    assert!(settings.proxy.is_some(), "{base_url} does not go through a proxy");
    settings
}

#[test]
fn a_proxy_is_given_the_whole_url_where_there_is_no_tls() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi")]);
    let proxy = proxy::Proxy::to(endpoint.address());
    let settings = proxied("http://api.example/v1?a=b", "http_proxy", &proxy.url());
    ask(settings).unwrap();
    let request = endpoint.finish().remove(0);
    assert_eq!(request.header("host"), Some("api.example"));
    let heads = proxy.heads();
    let line = "POST http://api.example:80/v1/chat/completions?a=b HTTP/1.1\r\n";
    assert!(heads.len() == 1 && heads[0].starts_with(line), "{heads:?}");
    let credentials = "\r\nProxy-Authorization: Basic dXNlcjpodW50QGVyMg==\r\n";
    assert!(heads[0].contains(credentials), "{heads:?}");
}

#[test]
fn a_proxy_is_asked_for_a_tunnel_where_there_is_tls() {
    let issuer = Issuer::new("issuer");
    let endpoint = tls::endpoint(issuer.issue("api.example"));
    let proxy = proxy::Proxy::to(endpoint.address());
    let settings = proxied("https://api.example:8443/v1", "https_proxy", &proxy.url());
    let completion = ask(trusting(&issuer, settings)).unwrap();
    assert_eq!(completion.message.as_text(), "over TLS");
    let heads = proxy.heads();
    let expected = format!(
        "CONNECT api.example:8443 HTTP/1.1\r\nHost: api.example:8443\r\n\
         User-Agent: uncut/{}\r\nProxy-Authorization: Basic dXNlcjpodW50QGVyMg==\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(heads, [expected]);
}

#[test]
fn a_proxy_that_refuses_is_quoted() {
    for (answer, expected, outcome) in [
        ("HTTP/1.1 407 Who are you\r\n\r\n", "answered 407 (Who are you) to", Outcome::Rejected),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "answered 403 (Forbidden) to", Outcome::Rejected),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "answered 502 (Bad Gateway)", Outcome::Transient),
        ("SSH-2.0-OpenSSH\r\n\r\n", "what the proxy answered is not HTTP", Outcome::Transient),
        ("HTTP/1.1 200", "closed the connection in the middle", Outcome::Transient),
        ("", "closed without an answer", Outcome::Transient),
    ] {
        let proxy = proxy::Proxy::answering(answer);
        let error = ask(proxied("https://api.example/v1", "all_proxy", &proxy.url())).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.outcome(), outcome, "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&format!("the proxy {}", proxy.authority())), "{text}");
        assert!(!format!("{text} {error:?}").contains("er2"), "{error:?}");
    }
    let proxy = proxy::Proxy::answering("HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n");
    let error = ask(proxied("http://api.example/v1", "all_proxy", &proxy.url())).unwrap_err();
    assert_eq!(error.outcome(), Outcome::Rejected, "{error}");
    assert!(error.advice().contains("user and password in the URL of the proxy"), "{error}");
}

#[test]
fn a_dead_proxy_is_named_and_its_password_is_not() {
    let refusing = Refusing::start();
    let port = refusing.address().port();
    for base_url in ["http://api.example/v1", "https://api.example/v1"] {
        let url = format!("http://user:hunter2@127.0.0.1:{port}");
        let error = ask(proxied(base_url, "all_proxy", &url)).unwrap_err();
        check_transport(
            &error,
            &format!(" through the proxy 127.0.0.1:{port}: 127.0.0.1:{port}: "),
        );
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn the_environment_of_the_program_names_the_proxy() {
    let dir = Dir::new("proxy");
    let issuer = Issuer::new("issuer");
    let plain = Endpoint::start(vec![Reply::answer("hi")]);
    let over_tls = tls::endpoint(issuer.issue("api.example"));
    let ca = dir.write("ca.pem", issuer.pem());
    for (variable, base_url, upstream, answer) in [
        ("http_proxy", "http://api.example/v1", plain.address(), "hi\n"),
        ("HTTPS_PROXY", "https://api.example/v1", over_tls.address(), "over TLS\n"),
    ] {
        let proxy = proxy::Proxy::to(upstream);
        let ran = run(&dir, base_url).env(variable, proxy.url()).env("UNCUT_CA_FILE", &ca).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), answer), "{ran:?}");
        assert_eq!(proxy.heads().len(), 1);
    }
    plain.finish();
}

/// 0.0.0.0 is an address of this machine that is no loopback address.
#[cfg(unix)]
#[test]
fn what_no_proxy_lists_is_reached_directly() {
    let dir = Dir::new("no-proxy");
    let refusing = Refusing::start();
    let dead = format!("http://{}", refusing.address());
    let endpoint = Endpoint::start((0..6).map(|_| Reply::answer("hi")).collect());
    let base_url = endpoint.base_url().replace("127.0.0.1", "0.0.0.0");
    for (variable, value) in [
        ("NO_PROXY", "localhost,0.0.0.0"),
        ("NO_PROXY", "0.0.0.0/8"),
        ("NO_PROXY", "*"),
        ("no_proxy", "0.0.0.0"),
        ("NO_PROXY", ".lan, *.corp,  0.0.0.0"),
    ] {
        let ran = run(&dir, &base_url).env("HTTP_PROXY", &dead).env(variable, value).run();
        assert_eq!(ran.code, Some(0), "{variable}={value}: {ran:?}");
    }
    let ran = run(&dir, &base_url).env("http_proxy", &dead).env("NO_PROXY", "10.0.0.0/8").run();
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.stderr.contains(" through the proxy 127.0.0.1:"), "{ran:?}");
    // The machine itself, whatever the variables say.
    let ran = run(&dir, &endpoint.base_url()).env("http_proxy", &dead).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    endpoint.finish();
}

// TLS.

/// The settings, with one more issuer.
fn trusting(issuer: &Issuer, mut settings: Settings) -> Settings {
    assert_eq!(settings.roots.add_pem(issuer.pem().as_bytes()), Ok(0));
    settings
}

/// Asks an endpoint with this certificate, as one that trusts the issuer.
fn ask_over_tls(issuer: &Issuer, identity: Identity) -> Result<Completion, ProviderError> {
    let server = tls::endpoint(identity);
    ask(trusting(issuer, settings(&format!("https://{}/v1", server.address()))))
}

#[track_caller]
fn check_tls(error: &ProviderError, expected: &str, advice: &str) {
    assert!(matches!(error, ProviderError::Tls { .. }), "{error:?}");
    assert_eq!(error.outcome(), Outcome::Rejected);
    assert!(error.to_string().contains(expected), "{error} without {expected}");
    assert!(error.advice().contains(advice), "{} without {advice}", error.advice());
}

#[test]
fn an_issuer_that_was_added_is_trusted_and_no_other_is() {
    let (ours, other) = (Issuer::new("ours"), Issuer::new("other"));
    let completion = ask_over_tls(&ours, ours.issue("127.0.0.1")).unwrap();
    assert_eq!(completion.message.as_text(), "over TLS");
    let error = ask_over_tls(&ours, other.issue("127.0.0.1")).unwrap_err();
    check_tls(&error, "the certificate of 127.0.0.1:", "--ca-file FILE");
    check_tls(&error, "comes from an issuer that is not trusted", "--ca-file FILE");
    // One of the same name.
    let error = ask_over_tls(&ours, Issuer::new("ours").issue("127.0.0.1")).unwrap_err();
    check_tls(&error, "the certificate of 127.0.0.1:", "--ca-file FILE");
}

#[test]
fn a_certificate_that_does_not_fit_is_explained() {
    let issuer = Issuer::new("issuer");
    let expired = issuer.issue_with("127.0.0.1", |params| {
        params.not_after = date_time_ymd(2020, 2, 3);
    });
    let error = ask_over_tls(&issuer, expired).unwrap_err();
    check_tls(
        &error,
        "expired on 2020-02-03T00:00:00",
        "check the clock of this machine, or renew",
    );
    let early = issuer.issue_with("127.0.0.1", |params| {
        params.not_before = date_time_ymd(3020, 2, 3);
    });
    let error = ask_over_tls(&issuer, early).unwrap_err();
    check_tls(&error, "is not valid before 3020-02-03T00:00:00", "check the clock");
    let error = ask_over_tls(&issuer, issuer.issue("api.example")).unwrap_err();
    check_tls(&error, "is for another name: api.example", "use a name that stands in");
    let pem = issuer.pem();
    let server = tls::endpoint(issuer.into_identity());
    let mut settings = settings(&format!("https://{}/v1", server.address()));
    settings.roots.add_pem(pem.as_bytes()).unwrap();
    check_tls(&ask(settings).unwrap_err(), "is that of an issuer", "CA:FALSE");
}

#[test]
fn tls_where_there_is_none_and_none_where_there_is_are_told() {
    let refuses = Server::start(|mut stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        drain(stream)
    });
    let error = ask(settings(&format!("https://{}/v1", refuses.address()))).unwrap_err();
    check_tls(&error, "speaks http, not TLS", "give http:// in place of https://");
    let shows = Server::start(|mut stream| {
        stream.write_all(b"<!DOCTYPE HTML><p>Error code: 400</p>")?;
        drain(stream)
    });
    let error = ask(settings(&format!("https://{}/v1", shows.address()))).unwrap_err();
    check_tls(&error, "speaks http, not TLS", "give http:// in place of https://");
    let greets = Server::start(|mut stream| {
        stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n")?;
        drain(stream)
    });
    let error = ask(settings(&format!("https://{}/v1", greets.address()))).unwrap_err();
    check_tls(&error, "does not speak TLS", "give http://");
    let closes = Server::start(|_| Ok(()));
    let error = ask(settings(&format!("https://{}/v1", closes.address()))).unwrap_err();
    check_transport(&error, "(where there is no TLS, give http://)");
    let error = ask(settings(&format!("http://{}/v1", closes.address()))).unwrap_err();
    check_transport(&error, "(where TLS is wanted, give https://)");
    let server = tls::endpoint(Issuer::new("issuer").issue("127.0.0.1"));
    let error = ask(settings(&format!("http://{}/v1", server.address()))).unwrap_err();
    check_tls(&error, "speaks TLS, and was spoken to without", "give https://");
    let page = "<title>400 The plain HTTP request was sent to HTTPS port</title>";
    let endpoint = Endpoint::start(vec![Reply::status(400, page)]);
    let error = ask(settings(&endpoint.base_url())).unwrap_err();
    assert_eq!(error.advice(), "give --base-url with https://");
    endpoint.finish();
}

#[test]
fn silence_in_the_middle_of_connecting_has_an_end() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let short = |settings| Settings { idle_timeout: Some(SHORT), ..settings };
    for settings in [
        settings(&format!("https://{address}/v1")),
        proxied("https://api.example/v1", "https_proxy", &format!("http://{address}")),
        proxied("https://api.example/v1", "https_proxy", &format!("https://{address}")),
    ] {
        let error = ask(short(settings)).unwrap_err();
        let limit = "--idle-timeout";
        assert!(
            matches!(error, ProviderError::Timeout { limit: l, after } if l == limit && after == SHORT),
            "{error:?}"
        );
    }
}

#[test]
fn a_server_without_tls_that_stays_silent_is_told_of() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let begun = Instant::now();
    let error = ask(settings(&format!("https://{address}/v1"))).unwrap_err();
    let handshake = "did not answer the TLS handshake: does it speak http?";
    check_transport(&error, &format!("connected, but {address} {handshake}"));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}

// Certificates, as the command line and the environment name them.

/// A folder with a CA and files that are none, and an endpoint that the CA vouches for.
fn certified(name: &str) -> (Dir, Server) {
    let issuer = Issuer::new("issuer");
    let dir = Dir::new(name)
        .with("ca.pem", issuer.pem())
        .with("garbage.pem", "garbage")
        .with("mounted/ca.crt", issuer.pem())
        .with("mounted/README", "garbage")
        .with("broken/a.pem", "garbage")
        .with("broken/b.0", issuer.pem());
    let endpoint = tls::endpoint(issuer.issue("127.0.0.1"));
    (dir, endpoint)
}

fn base_url(server: &Server) -> String {
    format!("https://{}/v1", server.address())
}

#[test]
fn a_ca_file_is_read_where_the_program_was_started() {
    let (dir, endpoint) = certified("ca-file");
    let ran = run(&dir, &base_url(&endpoint)).args(["--ca-file", "ca.pem"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "over TLS\n"), "{ran:?}");
    let ran = run(&dir, &base_url(&endpoint)).args(["-C", "mounted", "--ca-file=ca.pem"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "over TLS\n"), "{ran:?}");
    let ran = run(&dir, &base_url(&endpoint)).env("SSL_CERT_FILE", "ca.pem").run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "over TLS\n"), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let ran = run(&dir, &base_url(&endpoint)).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(10), ""), "{ran:?}");
    assert!(ran.stderr.ends_with("is not trusted; --ca-file FILE adds an issuer\n"), "{ran:?}");
}

#[test]
fn a_ca_file_that_can_not_be_used_is_a_usage_error() {
    let (dir, endpoint) = certified("bad-ca-file");
    for (name, problem) in [
        ("missing.pem", "missing.pem: No such file"),
        ("garbage.pem", "garbage.pem: has no certificate in it"),
        ("mounted", "mounted: it is a directory"),
    ] {
        // Where there is no TLS either: it was asked for.
        for base_url in [base_url(&endpoint), "http://127.0.0.1:9/v1".to_owned()] {
            let by_flag = run(&dir, &base_url).args(["--ca-file", name]).run();
            let by_variable = run(&dir, &base_url).env("UNCUT_CA_FILE", name).run();
            for (ran, origin) in [(by_flag, "--ca-file"), (by_variable, "UNCUT_CA_FILE")] {
                assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
                assert!(ran.stderr.contains(&format!("uncut: usage: {origin}: /")), "{ran:?}");
                assert!(ran.stderr.contains(problem), "{ran:?}");
            }
        }
    }
}

#[test]
fn variables_that_others_read_too_can_do_no_harm() {
    let (dir, endpoint) = certified("shared");
    let ran = run(&dir, &base_url(&endpoint))
        .env("SSL_CERT_FILE", "missing.pem")
        .env("SSL_CERT_DIR", "nowhere:mounted:broken:.ca:")
        .run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "over TLS\n"), "{ran:?}");
    for (origin, problem) in [
        ("SSL_CERT_FILE", "missing.pem: No such file"),
        ("SSL_CERT_DIR", "nowhere: No such file"),
        ("SSL_CERT_DIR", "broken: a.pem: has no certificate in it"),
    ] {
        let is_it =
            |line: &&str| line.contains(&format!("warning: {origin}: /")) && line.contains(problem);
        assert_eq!(ran.stderr.lines().filter(is_it).count(), 1, "{problem}: {ran:?}");
    }
    assert!(!ran.stderr.contains("mounted"), "{ran:?}");
    // Without TLS they are nobody's concern.
    let plain = Endpoint::start(vec![Reply::answer("hi")]);
    let ran = run(&dir, &plain.base_url())
        .env("SSL_CERT_FILE", "missing.pem")
        .env("SSL_CERT_DIR", "nowhere")
        .run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    plain.finish();
}
