//! A listener with a thread of its own, which ends when it is dropped.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than any test takes, short enough to find out that one hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one connection after the other.
pub(crate) struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on a port of the machine. That a connection fails is a caller's right, and some
    /// tests' subject.
    pub(crate) fn start(serve: impl Fn(TcpStream) -> io::Result<()> + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = thread::spawn(move || {
            loop {
                let (stream, _) = listener.accept().unwrap();
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                let _ = serve(stream);
            }
        });
        Server { address, over, listener: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the listener up.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
        let joined = self.listener.take().unwrap().join();
        assert!(joined.is_ok() || thread::panicking(), "the server has a fault of its own");
    }
}

/// An address that takes connections and answers none: whoever connects waits.
pub(crate) struct Silent {
    listener: TcpListener,
    /// Those that fill its queue up, which nobody empties.
    queue: Vec<TcpStream>,
}

impl Silent {
    /// Listens there, and fills the queue.
    pub(crate) fn on(listener: TcpListener) -> Silent {
        let address = listener.local_addr().unwrap();
        let wait = Duration::from_millis(200);
        let connect = || TcpStream::connect_timeout(&address, wait).ok();
        let queue = std::iter::from_fn(connect).take(10_000).collect();
        Silent { listener, queue }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        assert!(!self.queue.is_empty());
        self.listener.local_addr().unwrap()
    }
}

/// An address that nobody listens on, and nobody will as long as this lives: a connection of our
/// own holds its port. One that is merely free goes to whichever test asks next.
pub(crate) struct Refusing {
    address: SocketAddr,
    _held: [TcpStream; 2],
}

impl Refusing {
    /// A port of 127.0.0.1.
    pub(crate) fn start() -> Refusing {
        Refusing::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// The address of a listener, which ends.
    pub(crate) fn on(listener: TcpListener) -> Refusing {
        let address = listener.local_addr().unwrap();
        let connected = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        Refusing { address, _held: [accepted, connected] }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Reads up to the blank line, and nothing of what follows.
pub(crate) fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

/// Reads the body that the head announces.
pub(crate) fn read_body(stream: &mut impl Read, head: &str) -> io::Result<Vec<u8>> {
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Reads until the other side is gone; closing with something unread would reset the connection,
/// and what was sent might be lost.
pub(crate) fn drain(mut stream: impl Read) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}
