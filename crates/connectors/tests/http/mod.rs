//! A service that answers everything alike and tells what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

pub struct Service {
    pub address: String,
    requests: Receiver<Request>,
}

#[derive(Debug)]
pub struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Service {
    pub fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The test is over when nobody listens.
                if serve(stream.unwrap(), answer, &sender).is_none() {
                    break;
                }
            }
        });
        Self { address, requests }
    }

    /// The one request there was since the last time.
    pub fn request(&self) -> Request {
        let request = self.requests.recv_timeout(Duration::from_secs(10)).expect("a request");
        assert!(self.requests.try_recv().is_err(), "more than one request");
        request
    }

    pub fn was_left_alone(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub fn json(&self) -> Option<serde_json::Value> {
        let json = || serde_json::from_str(&self.body).unwrap();
        (!self.body.is_empty()).then(json)
    }
}

fn serve(stream: TcpStream, answer: &str, sender: &Sender<Request>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = std::iter::from_fn(|| Some(line()))
        .take_while(|l| !l.is_empty())
        .filter_map(|l| l.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())))
        .collect();
    let mut request = Request { method, path, headers, body: String::new() };
    let length = request.header("content-length").map_or(0, |l| l.parse().unwrap());
    reader.by_ref().take(length).read_to_string(&mut request.body).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    let reply = format!("{head}\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
    reader.get_mut().write_all(reply.as_bytes()).unwrap();
    sender.send(request).ok()
}
