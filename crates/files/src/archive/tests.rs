//! Archives made by hand, as a box that means harm would.

use super::*;
use std::io::Write;

/// One header and its bytes, whatever they say.
fn block(name: &[u8], kind: u8, mode: u32, link: &[u8], size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name);
    gnu.linkname[..link.len()].copy_from_slice(link);
    gnu.typeflag = [kind];
    header.set_mode(mode);
    header.set_size(size);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, data: &[u8]) -> Vec<u8> {
    block(name.as_bytes(), b'0', 0o644, b"", data.len() as u64, data)
}

fn folder(name: &str) -> Vec<u8> {
    block(name.as_bytes(), b'5', 0o755, b"", 0, b"")
}

fn link(name: &str, to: &str) -> Vec<u8> {
    block(name.as_bytes(), b'2', 0o777, to.as_bytes(), 0, b"")
}

fn staged(bytes: &[u8]) -> Staged {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Staged { file, digest: String::new() }
}

fn end() -> Vec<u8> {
    vec![0; 1024]
}

fn top() -> Vec<String> {
    vec!["top".to_owned()]
}

fn listed(blocks: &[Vec<u8>]) -> Result<Vec<Entry>, String> {
    let staged = staged(&[blocks.concat(), end()].concat());
    list(&staged, Tops::Only(&top())).map_err(|refused| {
        let line = refused.to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    })
}

fn refused(blocks: &[Vec<u8>]) -> String {
    match listed(blocks) {
        Ok(entries) => panic!("taken: {entries:?}"),
        Err(line) => line,
    }
}

#[test]
fn files_folders_and_links_are_listed_with_their_bytes() {
    let bytes = [
        folder("top/"),
        file("./top/a", b"hello"),
        block(b"top/run", b'0', 0o4755, b"", 2, b"#!"),
        link("top/sub/l", "../a"),
        link("top/m", "sub/deep"),
        end(),
    ]
    .concat();
    let staged = staged(&bytes);
    let entries = list(&staged, Tops::Only(&top())).unwrap();
    let paths: Vec<&str> = entries.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(paths, ["top", "top/a", "top/m", "top/run", "top/sub/l"]);
    let What::File { at, size, runs } = entries[1].what else { panic!() };
    let mut text = String::new();
    staged.content(at, size).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), runs), ("hello", false));
    assert!(matches!(entries[3].what, What::File { runs: true, .. }));
    assert_eq!(entries[4].what, What::Link { target: "../a".into() });
}

#[test]
fn what_tar_itself_writes_is_read() {
    let mut tar = tar::Builder::new(Vec::new());
    let long = format!("top/{}/{}", "d".repeat(120), "e".repeat(120));
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(3);
    tar.append_data(&mut header, &long, &b"abc"[..]).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "top/l", "x".repeat(150)).unwrap();
    let entries = listed(&[tar.into_inner().unwrap()]).unwrap();
    assert_eq!(entries[0].path, long);
    assert_eq!(entries[1].what, What::Link { target: "x".repeat(150) });
}

#[test]
fn relay_a18_nothing_leads_out() {
    for name in ["../x", "top/../../x", "top/..", "/etc/x", "/top/x", ".."] {
        refused(&[file(name, b"x")]);
    }
    for target in [
        "/etc/passwd",
        "..",
        "../..",
        "../other",
        "../../x",
        "sub/../../../x",
        "sub/..",
        "",
        "a\nb",
        "./../x",
    ] {
        refused(&[folder("top"), link("top/l", target)]);
    }
    // What was asked for is itself a link: where it leads is what should have been packed.
    refused(&[link("top", "elsewhere")]);
    // Down and up again by way of another link.
    refused(&[link("top/d", "."), link("top/e", "d/d/../..")]);
}

#[test]
fn relay_a18_nothing_is_written_through_a_link_or_a_file() {
    refused(&[link("top/l", "sub"), file("top/l/x", b"x")]);
    refused(&[file("top/l/x", b"x"), link("top/l", "sub")]);
    refused(&[file("top/f", b""), file("top/f/x", b"x")]);
    refused(&[file("top", b""), folder("top/x")]);
}

#[test]
fn relay_a18_only_plain_things() {
    // hard link, devices, pipe, sparse, extended headers, volume, unknown
    for kind in [b'1', b'3', b'4', b'6', b'S', b'x', b'g', b'V', b'M', b'Z'] {
        refused(&[block(b"top/x", kind, 0o644, b"top/y", 0, b"")]);
    }
    refused(&[block(b"top/a\xff", b'0', 0o644, b"", 0, b"")]);
    refused(&[file("top/a\nb", b"")]);
    refused(&[file("top/\x1b[2J", b"")]);
    refused(&[file("", b"x")]);
}

#[test]
fn boxes_16_39_only_what_was_asked_for() {
    refused(&[file("top/a", b""), file("other", b"")]);
    refused(&[file("top/a", b""), file(".git/hooks/h", b"")]);
    refused(&[file("topping", b"")]);
}

#[test]
fn nothing_comes_twice() {
    refused(&[file("top/a", b"shown"), file("top/a", b"written")]);
    refused(&[file("top/a", b"shown"), file("top//./a", b"written")]);
    refused(&[folder("top/a"), file("top/a", b"")]);
    assert!(listed(&[folder("top"), folder("top/"), file("top/a", b"")]).is_ok());
}

#[test]
fn a_hundred_thousand_entries_are_too_many() {
    let blocks: Vec<Vec<u8>> = (0..100_000).map(|n| file(&format!("top/{n}"), b"")).collect();
    assert!(refused(&blocks).contains("more than 20000 files"));
    // Nor can they hide as long names that belong to nothing.
    let names: Vec<Vec<u8>> = (0..100_000).map(|_| block(b"x", b'L', 0, b"", 2, b"x\0")).collect();
    assert!(refused(&names).contains("more than 20000 files"));
}

#[test]
fn sizes_that_lie_are_refused() {
    // The header promises more than there is: a bomb, if it were believed.
    let bomb = block(b"top/x", b'0', 0o644, b"", 1 << 40, b"x");
    assert!(refused(&[bomb]).contains("breaks off"));
    let bomb = block(b"top/x", b'0', 0o644, b"", u64::MAX, b"x");
    refused(&[bomb]);
    let name = block(b"././@LongLink", b'L', 0, b"", 1 << 33, b"x");
    refused(&[name]);
    let name = [b"top/".to_vec(), vec![b'x'; 100_000]].concat();
    let name = block(b"././@LongLink", b'L', 0, b"", name.len() as u64, &name);
    assert!(refused(&[name, file("top/a", b"")]).contains("longer than 4096"));
}

#[test]
fn an_archive_that_breaks_off_is_none() {
    let whole = [file("top/a", &[7; 3000]), end()].concat();
    for cut in [100, 600, 2000, 3500, whole.len() - 1024] {
        let staged = staged(&whole[..cut]);
        assert!(list(&staged, Tops::Only(&top())).is_err(), "{cut}");
    }
    let mut spoiled = whole.clone();
    spoiled[0] ^= 1;
    assert!(list(&staged(&spoiled), Tops::Only(&top())).is_err());
    assert!(list(&staged(b""), Tops::Any).is_err());
    assert!(list(&staged(&end()), Tops::Any).unwrap().is_empty());
}

#[test]
fn a_folders_content_may_hold_links_to_its_own_top() {
    let bytes =
        [folder("./"), file("a", b"x"), link("l", "a"), link("sub/l", "../a"), end()].concat();
    assert_eq!(list(&staged(&bytes), Tops::Any).unwrap().len(), 3);
    let bytes = [link("sub/l", "../../a"), end()].concat();
    assert!(list(&staged(&bytes), Tops::Any).is_err());
}
