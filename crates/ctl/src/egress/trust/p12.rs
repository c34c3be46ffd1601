//! A trust store for Java, written by hand: a PKCS#12 file with certificates, no keys and no password.
//!
//! Java counts a certificate in such a file as trusted only when it carries an attribute of Java's own
//! that says what for. Nothing in the file is secret, so nothing is encrypted and nothing is signed: a
//! store without a password is read as it is.

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OCTETS: u8 = 0x04;
const BMP_STRING: u8 = 0x1e;
/// `[0]`, around something else.
const EXPLICIT: u8 = 0xa0;

/// Object identifiers with tag and length.
const DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
const CERT_BAG: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";
const X509: &[u8] = b"\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
const FRIENDLY_NAME: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14";
/// Oracle's: what a certificate is trusted for.
const TRUSTED_FOR: &[u8] = b"\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01";
const ANYTHING: &[u8] = b"\x06\x04\x55\x1d\x25\x00";
const VERSION_3: &[u8] = b"\x02\x01\x03";

/// A store in which all of these, in DER, are trusted for anything.
pub fn store<'a>(certificates: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let bags = certificates.into_iter().enumerate();
    let bags: Vec<u8> = bags.flat_map(|(number, der)| bag(number, der)).collect();
    let safe = content(&tlv(SEQUENCE, &bags));
    let all = content(&tlv(SEQUENCE, &safe));
    tlv(SEQUENCE, &[VERSION_3, &all].concat())
}

fn content(bytes: &[u8]) -> Vec<u8> {
    tlv(SEQUENCE, &[DATA, &tlv(EXPLICIT, &tlv(OCTETS, bytes))].concat())
}

fn bag(number: usize, der: &[u8]) -> Vec<u8> {
    let certificate = tlv(SEQUENCE, &[X509, &tlv(EXPLICIT, &tlv(OCTETS, der))].concat());
    // Each needs a name of its own.
    let name: Vec<u8> =
        format!("trusted-{number}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    let attributes =
        [attribute(FRIENDLY_NAME, &tlv(BMP_STRING, &name)), attribute(TRUSTED_FOR, ANYTHING)];
    let parts = [CERT_BAG, &tlv(EXPLICIT, &certificate), &tlv(SET, &attributes.concat())];
    tlv(SEQUENCE, &parts.concat())
}

fn attribute(what: &[u8], value: &[u8]) -> Vec<u8> {
    tlv(SEQUENCE, &[what, &tlv(SET, value)].concat())
}

/// Tag, length, value.
fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = value.len().to_be_bytes();
    let digits = &length[length.iter().position(|b| *b != 0).unwrap_or(length.len() - 1)..];
    if value.len() >= 0x80 {
        bytes.push(0x80 | u8::try_from(digits.len()).unwrap_or(0));
    }
    bytes.extend_from_slice(digits);
    bytes.extend_from_slice(value);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_short_as_they_can_be() {
        assert_eq!(tlv(4, b""), [4, 0]);
        assert_eq!(tlv(4, &[1; 0x7f])[..2], [4, 0x7f]);
        assert_eq!(tlv(4, &[1; 0x80])[..3], [4, 0x81, 0x80]);
        assert_eq!(tlv(4, &[1; 0x1234])[..4], [4, 0x82, 0x12, 0x34]);
    }

    #[test]
    fn openssl_finds_every_certificate_in_it() {
        use std::process::Command;
        let dir = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| {
            let output = Command::new("openssl").current_dir(dir.path()).args(args).output();
            let output = output.expect("these tests need openssl");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let mut made = Vec::new();
        for name in ["one", "two"] {
            let subject = format!("/CN={name}");
            let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
            let out = ["-keyout", "k", "-out", "c", "-outform", "DER"];
            run(&[&["req", "-x509", "-subj", &subject], &key[..], &out[..]].concat());
            made.push(std::fs::read(dir.path().join("c")).unwrap());
        }
        std::fs::write(dir.path().join("s"), store(made.iter().map(Vec::as_slice))).unwrap();
        let told = run(&["pkcs12", "-in", "s", "-nokeys", "-nomacver", "-passin", "pass:"]);
        assert_eq!(told.matches("BEGIN CERTIFICATE").count(), 2, "{told}");
        assert!(told.contains("friendlyName: trusted-1"), "{told}");
        assert!(told.contains("2.16.840.1.113894.746875.1.1"), "{told}");
    }
}
