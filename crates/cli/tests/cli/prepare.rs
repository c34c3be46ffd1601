//! `prepare` talks to an engine itself; here to one that has nothing and can pull nothing.

use crate::support::{Ended, Home};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// An engine without images and without a registry.
fn empty_engine(socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap()));
        }
    });
}

fn answer(mut stream: UnixStream) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return,
        }
    }
    let line = String::from_utf8_lossy(&request).lines().next().unwrap().to_owned();
    let (status, body) = match line.as_str() {
        l if l.contains("_ping") => ("200 OK", "OK"),
        l if l.contains("/version") => ("200 OK", r#"{"Version":"20.10.0","ApiVersion":"1.41"}"#),
        l if l.contains("/info") => ("200 OK", "{}"),
        l if l.contains("/images/create") => ("500 Nope", r#"{"message":"no route to registry"}"#),
        _ => ("404 Not Found", r#"{"message":"no such image"}"#),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

#[test]
fn no_base_image_is_3_and_says_how_to_make_one() {
    let home = Home::new();
    let (socket, ctl) = (home.tmp().join("engine.sock"), home.tmp().join("agentbox-ctl"));
    empty_engine(&socket);
    std::fs::write(&ctl, "binary").unwrap();
    let mut command = home.command(&["prepare", "--build"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display())).env("AGENTBOX_CTL", &ctl);
    let output = Ended::of(command.spawn().unwrap()).exits(3).prints("");
    output.says("no route to registry").says("hint:").says("make base-image");
}

#[test]
fn an_archive_that_is_not_there_is_a_usage_error() {
    let home = Home::new();
    let (socket, ctl) = (home.tmp().join("engine.sock"), home.tmp().join("agentbox-ctl"));
    empty_engine(&socket);
    std::fs::write(&ctl, "binary").unwrap();
    let mut command = home.command(&["prepare", "--import-base", "no-such.tar"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display())).env("AGENTBOX_CTL", &ctl);
    Ended::of(command.spawn().unwrap()).exits(2).says("cannot read no-such.tar");
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let home = Home::new();
    let ctl = home.tmp().join("agentbox-ctl");
    std::fs::write(&ctl, "binary").unwrap();
    let mut command = home.command(&["prepare"]);
    command.env("DOCKER_HOST", "unix:///nonexistent.sock").env("AGENTBOX_CTL", &ctl);
    let output = Ended::of(command.spawn().unwrap()).exits(1);
    output.says("no container engine answered").says("/nonexistent.sock").says("hint:");
}
