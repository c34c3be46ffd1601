//! `agentbox-ctl egress selftest` (root, run by the host before anything of the box's own runs): tries the
//! ways out that must not be there, and the one that must.
//!
//! It says what it found and decides nothing. All of it is tried at once: where there is no network, the
//! kernel refuses each attempt in no time, and where there is one, nobody waits for long.

use super::client;
use crate::error::{Doing, Result};
use crate::input;
use protocol::ctl::{Selftest, Tested};
use protocol::egress::inside;
use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(1);
const RESOLVERS: &str = "/etc/resolv.conf";
const ROUTES: &str = "/proc/net/route";
const ROUTES_6: &str = "/proc/net/ipv6_route";
/// Usual gateways of container networks, whatever this box is said to be on.
const GATEWAYS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(172, 17, 0, 1), Ipv4Addr::new(192, 168, 65, 1), Ipv4Addr::new(10, 88, 0, 1)];
/// Where clouds tell secrets to whoever asks.
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

pub fn run() -> Result<i32> {
    let wanted: Selftest = input::json_line(&mut io::stdin().lock())?;
    let tested = Tested {
        open: found(&wanted.addresses),
        missing: if wanted.proxy { lacking() } else { Vec::new() },
    };
    let line = serde_json::to_string(&tested).map_err(io::Error::other);
    crate::say(&format!("{}\n", line.doing(|| "say what was found")?));
    Ok(protocol::exit::OK)
}

/// Every way out that there is.
fn found(addresses: &[IpAddr]) -> Vec<String> {
    let one = |four: [u8; 4], port| SocketAddr::from((four, port));
    let mut targets = vec![
        one([1, 1, 1, 1], 443),
        one([8, 8, 8, 8], 53),
        SocketAddr::from((Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111), 443)),
        SocketAddr::from((METADATA, 80)),
    ];
    targets.extend(gateways().into_iter().chain(GATEWAYS).map(|at| SocketAddr::from((at, 22))));
    targets.extend(addresses.iter().map(|address| SocketAddr::from((*address, 22))));
    let mut resolvers = resolvers(&fs::read_to_string(RESOLVERS).unwrap_or_default());
    resolvers.push(Ipv4Addr::new(8, 8, 8, 8).into());
    let name = random_name();
    let (tcp, dns) = std::thread::scope(|scope| {
        let tcp: Vec<_> = targets.iter().map(|at| scope.spawn(move || reaches(*at))).collect();
        let name = &name;
        let dns: Vec<_> =
            resolvers.iter().map(|at| scope.spawn(move || resolves(*at, name))).collect();
        let all = |tries: Vec<std::thread::ScopedJoinHandle<'_, bool>>| -> Vec<bool> {
            tries.into_iter().map(|one| one.join().unwrap_or(true)).collect()
        };
        (all(tcp), all(dns))
    });
    let tcp = targets.iter().zip(tcp).filter(|(_, open)| *open);
    let dns = resolvers.iter().zip(dns).filter(|(_, open)| *open);
    default_route()
        .into_iter()
        .chain(tcp.map(|(at, _)| format!("{at} can be reached")))
        .chain(dns.map(|(at, _)| format!("{at} looks up names")))
        .collect()
}

/// One that refuses is there, too.
fn reaches(at: SocketAddr) -> bool {
    match TcpStream::connect_timeout(&at, PATIENCE) {
        Ok(_) => true,
        Err(e) => e.kind() == io::ErrorKind::ConnectionRefused,
    }
}

/// Whether somebody has looked for a name that nobody has. An answer that it does not exist took a
/// question to the outside, which is enough to tell anybody anything.
fn resolves(at: IpAddr, name: &str) -> bool {
    let ask = || -> io::Result<bool> {
        let any: IpAddr = match at {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect((at, 53))?;
        socket.send(&question(name))?;
        let mut answer = [0; 512];
        let length = socket.recv(&mut answer)?;
        Ok(was_looked_up(&answer[..length]))
    };
    ask().unwrap_or(false)
}

/// In the lower half of the fourth byte 0 is an answer, and 3 that there is no such name; all else means
/// that nobody looked.
fn was_looked_up(answer: &[u8]) -> bool {
    answer.len() >= 12 && matches!(answer[3] & 0xf, 0 | 3)
}

/// A question for the address of a name, as resolvers ask it.
fn question(name: &str) -> Vec<u8> {
    let mut bytes = vec![0xab, 0x0c, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(0));
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    bytes
}

fn random_name() -> String {
    let mut bytes = [0; 8];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    let _ = read;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("agentbox-{hex}.example.com")
}

fn resolvers(text: &str) -> Vec<IpAddr> {
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    named.filter_map(|rest| rest.trim().parse().ok()).take(8).collect()
}

fn default_route() -> Option<String> {
    let four = fs::read_to_string(ROUTES).unwrap_or_default();
    let six = fs::read_to_string(ROUTES_6).unwrap_or_default();
    default_of(&four).or_else(|| default_of_6(&six)).map(|by| format!("a default route by {by}"))
}

/// `Iface Destination Gateway Flags …`, in hexadecimal digits.
fn default_of(table: &str) -> Option<String> {
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut by = lines.filter_map(|words| match words[..] {
        [by, "00000000", _, _, _, _, _, "00000000", ..] if by != "lo" => Some(by.to_owned()),
        _ => None,
    });
    by.next()
}

/// `destination length source length next-hop … interface`. The kernel refuses by way of loopback.
fn default_of_6(table: &str) -> Option<String> {
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut by = lines.filter_map(|words| match (words.first(), words.get(1), words.last()) {
        (Some(to), Some(&"00"), Some(&by)) if to.bytes().all(|b| b == b'0') && by != "lo" => {
            Some(by.to_owned())
        }
        _ => None,
    });
    by.next()
}

fn gateways() -> Vec<Ipv4Addr> {
    let table = fs::read_to_string(ROUTES).unwrap_or_default();
    let gateway = |line: &str| {
        let digits = line.split_whitespace().nth(2)?;
        let number = u32::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
        Some(Ipv4Addr::from(number.to_le_bytes()))
    };
    table.lines().skip(1).filter_map(gateway).take(8).collect()
}

/// What does not work of the one way there is.
fn lacking() -> Vec<String> {
    let mut lacking = Vec::new();
    match client::get(inside::HEALTH) {
        Ok(answer) if answer.status == 200 => {}
        Ok(answer) => lacking.push(format!("the proxy answers {}", answer.status)),
        Err(e) => lacking.push(format!("the proxy does not answer: {e}")),
    }
    // Under this name nobody is, and the port is no web server's: no policy lets it through.
    match client::connect(&format!("{}:22", random_name())) {
        Ok(answer) if answer.status == 200 => {
            lacking.push("the proxy opens any port to anybody".to_owned());
        }
        Ok(answer) if answer.reason.is_some() => {}
        Ok(_) => lacking.push("the proxy gives no reason for a refusal".to_owned()),
        Err(e) => lacking.push(format!("the proxy does not refuse in words: {e}")),
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn routes_are_read_from_the_kernels_tables() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n";
        let local = format!("{head}docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n");
        assert_eq!(default_of(&local), None);
        let open = format!("{local}eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\n");
        assert_eq!(default_of(&open).as_deref(), Some("eth0"));
        assert_eq!(default_of(""), None);
        let zero = "00000000000000000000000000000000";
        let by = |name: &str| {
            format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 {name}\n")
        };
        assert_eq!(default_of_6(&by("lo")), None);
        assert_eq!(default_of_6(&format!("{}{}", by("lo"), by("eth0"))).as_deref(), Some("eth0"));
    }

    #[test]
    fn a_server_that_is_there_is_found_whether_it_takes_us_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        assert!(reaches(at));
        drop(listener);
        assert!(reaches(at));
    }

    #[test]
    fn names_are_asked_for_as_resolvers_do() {
        let asked = question("a.example");
        assert_eq!(asked[12..], *b"\x01a\x07example\0\0\x01\0\x01");
        let text = "# x\nnameserver 127.0.0.11\nnameserver  ::1\nnameserver nonsense\nsearch x\n";
        assert_eq!(resolvers(text), ["127.0.0.11", "::1"].map(|a| a.parse::<IpAddr>().unwrap()));
        assert_ne!(random_name(), random_name());
    }

    #[test]
    fn an_answer_that_took_a_question_outside_is_a_way_out() {
        let answered = |code: u8| {
            let mut answer = question("x.example.com");
            answer[3] = 0x80 | code;
            was_looked_up(&answer)
        };
        assert!(answered(0) && answered(3));
        assert!(!answered(2) && !answered(5) && !was_looked_up(b"short"));
    }
}
