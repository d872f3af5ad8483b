//! A proxy that opens tunnels and passes requests on, to one place whatever it is asked for: names
//! that only it can resolve.

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::server::{Server, read_body, read_head};

pub(crate) struct Proxy {
    server: Server,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Leads to `upstream`.
    pub(crate) fn to(upstream: SocketAddr) -> Proxy {
        Proxy::start(move |client, head| {
            let mut upstream = TcpStream::connect(upstream)?;
            let (method, rest) = head.split_once(' ').unwrap();
            if method == "CONNECT" {
                (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            } else {
                let (_, path) = rest.strip_prefix("http://").unwrap().split_once('/').unwrap();
                write!(upstream, "{method} /{path}")?;
            }
            pass_on(&client, &upstream)
        })
    }

    /// Answers everything with this.
    pub(crate) fn answering(answer: &'static str) -> Proxy {
        Proxy::start(move |mut client, head| {
            read_body(&mut client, head)?;
            client.write_all(answer.as_bytes())
        })
    }

    fn start(serve: impl Fn(TcpStream, &str) -> io::Result<()> + Send + 'static) -> Proxy {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let server = Server::start(move |mut client| {
            let head = read_head(&mut client)?;
            kept.lock().unwrap().push(head.clone());
            serve(client, &head)
        });
        Proxy { server, heads }
    }

    /// Its URL, with a user and a password that has to be encoded.
    pub(crate) fn url(&self) -> String {
        format!("http://user:hunt%40er2@{}", self.server.address())
    }

    /// Its host and port.
    pub(crate) fn authority(&self) -> String {
        self.server.address().to_string()
    }

    /// The heads of what it was asked.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Copies in both directions, until both have ended.
fn pass_on(client: &TcpStream, upstream: &TcpStream) -> io::Result<()> {
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::copy(&mut &*client, &mut &*upstream);
            let _ = upstream.shutdown(Shutdown::Write);
        });
        let copied = io::copy(&mut &*upstream, &mut &*client);
        let _ = client.shutdown(Shutdown::Write);
        copied.map(drop)
    })
}
