use super::*;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

fn now() -> SystemTime {
    SystemTime::now()
}

fn host(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn certificate(config: &ServerConfig) -> CertificateDer<'static> {
    // What a client gets to see of it.
    let mut client = {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Seen));
        rustls::ClientConnection::new(
            Arc::new(config.with_no_client_auth()),
            "a.ex.com".try_into().unwrap(),
        )
        .unwrap()
    };
    let mut server = rustls::ServerConnection::new(Arc::new(config.clone())).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    let shown = client.peer_certificates().unwrap();
    assert_eq!(shown.len(), 1, "the authority itself is not sent along");
    shown[0].clone().into_owned()
}

/// Takes any certificate.
#[derive(Debug)]
struct Seen;

impl ServerCertVerifier for Seen {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn trusts(pem: &str, leaf: &CertificateDer<'_>, name: &str, at: SystemTime) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
    let name = ServerName::try_from(name).unwrap();
    let at = UnixTime::since_unix_epoch(at.duration_since(UNIX_EPOCH).unwrap());
    verifier.verify_server_cert(leaf, &[], &name, &[], at).is_ok()
}

fn openssl(der: &CertificateDer<'_>) -> String {
    let mut openssl = Command::new("openssl")
        .args(["x509", "-inform", "DER", "-noout", "-text"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut openssl.stdin.take().unwrap(), der).unwrap();
    String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_leaf_is_for_one_host_and_lasts_from_before_now() {
    let home = home();
    let authority = Authority::open(&home.path().join("ca"), now()).unwrap();
    let pem = authority.certificates(now()).remove(0);
    let leaf = certificate(&authority.leaf(&host("a.ex.com"), now()).unwrap());
    assert!(trusts(&pem, &leaf, "a.ex.com", now()));
    assert!(!trusts(&pem, &leaf, "b.ex.com", now()));
    // The box's clock lags by a day and a half; case 54.
    assert!(trusts(&pem, &leaf, "a.ex.com", now() - DAY - DAY / 2));
    assert!(!trusts(&pem, &leaf, "a.ex.com", now() - DAY * 3));
    assert!(trusts(&pem, &leaf, "a.ex.com", now() + DAY * 4));
    assert!(!trusts(&pem, &leaf, "a.ex.com", now() + DAY * 6));
    let address = certificate(&authority.leaf(&host("203.0.113.7"), now()).unwrap());
    assert!(trusts(&pem, &address, "203.0.113.7", now()));
}

#[test]
fn certificates_say_what_strict_programs_want_to_read() {
    let home = home();
    let authority = Authority::open(&home.path().join("ca"), now()).unwrap();
    let pem = authority.certificates(now()).remove(0);
    let ca = openssl(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap());
    for wanted in [
        "prime256v1",
        "CN = AgentBox Egress CA ",
        "CA:TRUE, pathlen:0",
        "X509v3 Basic Constraints: critical",
        "X509v3 Key Usage: critical\n                Certificate Sign, CRL Sign",
        "X509v3 Subject Key Identifier",
    ] {
        assert!(ca.contains(wanted), "{wanted} is not in {ca}");
    }
    let key_id = |text: &str, after: &str| {
        let rest = text.split_once(after).unwrap().1;
        rest.lines().nth(1).unwrap().trim().trim_start_matches("keyid:").to_owned()
    };
    let leaf = openssl(&certificate(&authority.leaf(&host("a.ex.com"), now()).unwrap()));
    for wanted in [
        "X509v3 Key Usage: critical\n                Digital Signature",
        "TLS Web Server Authentication",
        "DNS:a.ex.com",
    ] {
        assert!(leaf.contains(wanted), "{wanted} is not in {leaf}");
    }
    assert_eq!(leaf.matches("DNS:").count(), 1);
    let authority_key = key_id(&leaf, "X509v3 Authority Key Identifier:");
    assert_eq!(authority_key, key_id(&ca, "X509v3 Subject Key Identifier:"));
}

#[test]
fn leaves_have_their_own_key_and_their_own_numbers() {
    let home = home();
    let authority = Authority::open(&home.path().join("ca"), now()).unwrap();
    let of = |name| certificate(&authority.leaf(&host(name), now()).unwrap());
    let field = |text: &str, after: &str| {
        text.split_once(after).unwrap().1.lines().nth(1).unwrap().trim().to_owned()
    };
    let (a, b) = (openssl(&of("a.ex.com")), openssl(&of("b.ex.com")));
    assert_ne!(field(&a, "Serial Number:"), field(&b, "Serial Number:"));
    let stored = std::fs::read_dir(home.path().join("ca")).unwrap().flatten();
    let key = stored.map(|e| e.path()).find(|p| p.extension().unwrap() == "key").unwrap();
    let key = KeyPair::from_pem(&std::fs::read_to_string(key).unwrap()).unwrap();
    assert_ne!(key.public_key_raw(), authority.leaf_key.public_key_raw());
}

#[test]
fn the_same_authority_is_there_after_a_restart() {
    let home = home();
    let dir = home.path().join("ca");
    let first = Authority::open(&dir, now()).unwrap().certificates(now());
    let again = Authority::open(&dir, now()).unwrap();
    assert_eq!(again.certificates(now()), first);
    let leaf = certificate(&again.leaf(&host("a.ex.com"), now()).unwrap());
    assert!(trusts(&first[0], &leaf, "a.ex.com", now()));
}

#[test]
fn the_next_authority_is_known_before_it_signs() {
    let home = home();
    let dir = home.path().join("ca");
    let start = now();
    let authority = Authority::open(&dir, start).unwrap();
    let old = authority.certificates(start).remove(0);
    assert!(!authority.tend(start + LIFE - OVERLAP - DAY * 2).unwrap());

    let overlap = start + LIFE - OVERLAP + DAY;
    assert!(authority.tend(overlap).unwrap());
    let both = authority.certificates(overlap);
    assert_eq!(both.len(), 2);
    assert_eq!(both[0], old);
    let leaf = certificate(&authority.leaf(&host("a.ex.com"), overlap).unwrap());
    assert!(trusts(&old, &leaf, "a.ex.com", overlap));

    let late = start + LIFE - DAY * 10;
    let leaf = certificate(&authority.leaf(&host("a.ex.com"), late).unwrap());
    assert!(!trusts(&old, &leaf, "a.ex.com", late));
    assert!(trusts(&both[1], &leaf, "a.ex.com", late));

    let after = start + LIFE + DAY;
    assert!(authority.tend(after).unwrap());
    assert_eq!(authority.certificates(after), [both[1].clone()]);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn what_others_could_have_read_or_put_there_is_not_used() {
    let home = home();
    let dir = home.path().join("ca");
    Authority::open(&dir, now()).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let files = || std::fs::read_dir(&dir).unwrap().flatten().map(|e| e.path());
    let key = files().find(|p| p.extension().unwrap() == "key").unwrap();
    assert_eq!((mode(&dir), mode(&key)), (0o700, 0o600));
    let refused = |why: &str| {
        let error = Authority::open(&dir, now()).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
    };

    chmod(&key, 0o640);
    refused("chmod 600");
    chmod(&key, 0o600);
    chmod(&dir, 0o750);
    refused("chmod 700");
    chmod(&dir, 0o700);
    let second = home.path().join("second name");
    std::fs::hard_link(&key, &second).unwrap();
    refused("second name");
    std::fs::remove_file(&key).unwrap();
    std::os::unix::fs::symlink(&second, &key).unwrap();
    refused("symbolic link");
    std::fs::remove_file(&key).unwrap();
    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    chmod(&key, 0o600);
    refused("do not belong together");
    std::fs::remove_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink(home.path(), &dir).unwrap();
    refused("not a folder");
}

#[test]
fn only_so_many_leaves_are_kept() {
    let home = home();
    let authority = Authority::open(&home.path().join("ca"), now()).unwrap();
    let by = authority.signer(now()).unwrap();
    let config = authority.leaf(&host("a.ex.com"), now()).unwrap();
    let mut leaves = Leaves::default();
    let leaf = || Leaf { config: config.clone(), made: now(), by: by.clone(), used: 0 };
    for n in 0..MOST_LEAVES {
        leaves.keep(host(&format!("h{n}.ex.com")), leaf());
    }
    assert!(leaves.find(&host("h0.ex.com"), &by, now()).is_some());
    leaves.keep(host("new.ex.com"), leaf());
    assert_eq!(leaves.all.len(), MOST_LEAVES);
    assert!(leaves.find(&host("h0.ex.com"), &by, now()).is_some());
    assert!(leaves.find(&host("h1.ex.com"), &by, now()).is_none());
    // A leaf that is nearly over is made again.
    assert!(leaves.find(&host("h0.ex.com"), &by, now() + DAY * 5).is_none());
}
