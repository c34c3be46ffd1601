//! Archives made by hand, as a box that means harm would.

use super::*;
use crate::landing::Landing;
use crate::place::Place;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One header and its bytes, whatever they say.
fn block(name: &[u8], kind: u8, mode: u32, link: &[u8], data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name);
    gnu.linkname[..link.len()].copy_from_slice(link);
    gnu.typeflag = [kind];
    header.set_mode(mode);
    header.set_size(data.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, data: &str) -> Vec<u8> {
    block(name.as_bytes(), b'0', 0o644, b"", data.as_bytes())
}

fn folder(name: &str) -> Vec<u8> {
    block(name.as_bytes(), b'5', 0o755, b"", b"")
}

fn link(name: &str, to: &str) -> Vec<u8> {
    block(name.as_bytes(), b'2', 0o777, to.as_bytes(), b"")
}

const BOUNDS: Bounds<'_> = Bounds { tops: Tops::Any, git: false, bytes: 1 << 20, entries: 100 };

/// Writes blocks to `./out` of a fresh folder; what was taken, and every file there.
fn landed(blocks: &[Vec<u8>]) -> (Taken, BTreeMap<String, String>) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    std::fs::write(dir.join("beside"), "mine").unwrap();
    let place = Place::find(&dir.join("out"), false, &[("x", false)]).unwrap();
    let mut landing = Landing::new(place);
    let tops = ["x".to_owned()];
    let bounds = Bounds { tops: Tops::Only(&tops), ..BOUNDS };
    let mut taken = Taken::default();
    let bytes = [blocks.concat(), vec![0; 1024]].concat();
    read(bytes.as_slice(), bounds, &mut taken, |arrived, content| landing.put(arrived, content))
        .unwrap();
    let mut found = BTreeMap::new();
    list(&dir, &dir, &mut found);
    assert_eq!(found.remove("beside").as_deref(), Some("mine"));
    (taken, found)
}

fn list(root: &Path, dir: &Path, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = String::from_utf8_lossy(path.strip_prefix(root).unwrap().as_os_str().as_bytes());
        if entry.file_type().unwrap().is_dir() {
            list(root, &path, into);
        } else if let Ok(target) = path.read_link() {
            into.insert(name.into_owned(), format!("→ {}", target.display()));
        } else {
            into.insert(name.into_owned(), std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn boxes_16_39_only_what_was_asked_for_is_written() {
    let (taken, found) = landed(&[
        folder("x"),
        file("x/good", "fine"),
        file("../evil", "e"),
        file(".git/hooks/h", "h"),
        link("x/l", "/etc"),
        file("x/l/p", "p"),
        file("sibling", "s"),
    ]);
    assert_eq!(found, BTreeMap::from([("out/good".into(), "fine".into())]));
    assert_eq!(taken.refused.len(), 5, "{:?}", taken.refused);
    for (line, name) in
        taken.refused.iter().zip(["../evil", ".git/hooks/h", "x/l", "x/l/p", "sibling"])
    {
        assert!(line.contains(name), "{line}");
    }
}

#[test]
fn whatever_is_no_plain_file_is_refused_and_the_rest_is_written() {
    let odd = [
        block(b"x/hard", b'1', 0o644, b"x/good", b""),
        block(b"x/device", b'3', 0o644, b"", b""),
        block(b"x/block", b'4', 0o644, b"", b""),
        block(b"x/pipe", b'6', 0o644, b"", b""),
        block(b"x/setuid", b'0', 0o4755, b"", b"#!"),
        block(b"x/setgid", b'0', 0o2755, b"", b"#!"),
        block(b"x/sticky", b'5', 0o1777, b"", b""),
        block(b"x/pax", b'x', 0o644, b"", b"20 path=../../evil1\n"),
        block(b"x/sparse", b'S', 0o644, b"", b""),
        file("/etc/passwd", "root"),
        file("x/a/../../../evil", "e"),
        file("x/new\nline", "n"),
        file("x/.GIT/config", "g"),
        link("x/up", "../.."),
        link("x/bounce", "good/../../.."),
        file("x/good", "again"),
        link("x/good", "other"),
    ];
    let all: Vec<Vec<u8>> = [folder("x/"), file("x/good", "fine")]
        .into_iter()
        .chain(odd.clone())
        .chain([file("x/last", "l")])
        .collect();
    let (taken, found) = landed(&all);
    let wanted =
        BTreeMap::from([("out/good".into(), "fine".into()), ("out/last".into(), "l".into())]);
    assert_eq!(found, wanted);
    assert_eq!(taken.refused.len(), odd.len(), "{:#?}", taken.refused);
    assert!(taken.refused.iter().all(|line| line.lines().count() == 1));
}

#[test]
fn a_chain_of_links_leads_nowhere() {
    let (taken, found) = landed(&[
        folder("x"),
        folder("x/d"),
        link("x/one", "d"),
        link("x/d/two", ".."),
        file("x/one/p", "p"),
        file("x/d/two/q", "q"),
    ]);
    assert_eq!(taken.refused.len(), 2, "{:?}", taken.refused);
    assert_eq!(
        found,
        BTreeMap::from([("out/one".into(), "→ d".into()), ("out/d/two".into(), "→ ..".into())])
    );
}

#[test]
fn names_are_bytes() {
    let (taken, found) = landed(&[folder("x"), block(b"x/b\xffd", b'0', 0o644, b"", b"bytes")]);
    assert!(taken.is_whole(), "{:?}", taken.refused);
    assert_eq!(found.values().collect::<Vec<_>>(), ["bytes"]);
}

#[test]
fn too_much_ends_it() {
    let nothing = |_: &Arrived, _: &mut dyn Read| Ok(());
    let large = [file("a", &"x".repeat(600)), file("b", &"x".repeat(600))].concat();
    let bounds = Bounds { bytes: 1000, ..BOUNDS };
    let ended = read(large.as_slice(), bounds, &mut Taken::default(), nothing);
    assert_eq!(ended, Err(Ended::TooMuch { bytes: 1000, entries: 100 }));
    let many: Vec<u8> = (0..200).flat_map(|n| file(&format!("f{n}"), "")).collect();
    let ended = read(many.as_slice(), BOUNDS, &mut Taken::default(), nothing);
    assert!(matches!(ended, Err(Ended::TooMuch { .. })));
    let refused: Vec<u8> = (0..200).flat_map(|n| file(&format!("../f{n}"), "")).collect();
    let ended = read(refused.as_slice(), BOUNDS, &mut Taken::default(), nothing);
    assert!(matches!(ended, Err(Ended::TooMuch { .. })));
}

#[test]
fn what_lies_in_the_way_on_the_host_is_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    std::fs::create_dir_all(dir.join("out")).unwrap();
    std::fs::create_dir(dir.join("elsewhere")).unwrap();
    std::fs::write(dir.join("target"), "kept").unwrap();
    std::os::unix::fs::symlink("../elsewhere", dir.join("out/sub")).unwrap();
    std::os::unix::fs::symlink("../target", dir.join("out/file")).unwrap();
    std::fs::create_dir(dir.join("out/folder")).unwrap();
    let mut landing = Landing::new(Place { folder: dir.join("out"), renamed: None });
    let bytes =
        [file("sub/p", "p"), file("file", "new"), file("folder", "f"), vec![0; 1024]].concat();
    let mut taken = Taken::default();
    read(bytes.as_slice(), BOUNDS, &mut taken, |a, c| landing.put(a, c)).unwrap();
    assert_eq!(taken.refused.len(), 2, "{:?}", taken.refused);
    assert!(!dir.join("elsewhere/p").exists());
    assert_eq!(std::fs::read_to_string(dir.join("target")).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(dir.join("out/file")).unwrap(), "new");
}

fn name() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let part = prop_oneof![
        4 => Just("x"), 4 => Just("a"), 3 => Just("b"),
        1 => Just(".."), 1 => Just("."), 1 => Just(""), 1 => Just(".git")
    ];
    proptest::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(400))]
    #[test]
    fn whatever_comes_stays_below_the_destination(
        entries in proptest::collection::vec((name(), 0..4u8, name()), 1..12),
    ) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::write(dir.join("beside"), "mine").unwrap();
        let mut landing = Landing::new(Place::find(&dir.join("out"), false, &[("x", false)]).unwrap());
        let blocks: Vec<Vec<u8>> = entries.iter().map(|(name, kind, to)| match kind {
            0 => folder(name),
            1 => link(name, to),
            2 => block(name.as_bytes(), b'1', 0o644, to.as_bytes(), b""),
            _ => file(name, "theirs"),
        }).collect();
        let bytes = [blocks.concat(), vec![0; 1024]].concat();
        let tops = ["x".to_owned()];
        let bounds = Bounds { tops: Tops::Only(&tops), ..BOUNDS };
        let mut taken = Taken::default();
        read(bytes.as_slice(), bounds, &mut taken, |a, c| landing.put(a, c)).unwrap();

        proptest::prop_assert_eq!(std::fs::read_to_string(dir.join("beside")).unwrap(), "mine");
        let out = dir.join("out");
        let mut pending = vec![dir.clone()];
        while let Some(folder) = pending.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                proptest::prop_assert!(path.starts_with(&out) || path == dir.join("beside"));
                proptest::prop_assert!(!path.ends_with(".git"));
                if let Ok(real) = path.canonicalize() {
                    proptest::prop_assert!(real.starts_with(&out) || path == dir.join("beside"), "{path:?}");
                }
                if entry.file_type().unwrap().is_dir() {
                    pending.push(path);
                }
            }
        }
    }
}
