//! Files that Git LFS keeps elsewhere.
//!
//! A push that adds a pointer without its content breaks the branch for everybody else, and the
//! content is uploaded by a hook that never runs here: where to is written in files a box can
//! change. So such a push is the person's to make.

use super::{Done, Transfer, TransferError};
use crate::process::Limit;
use connectors::git::{ObjectId, RemoteName};
use protocol::text::shortened;

const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// A pointer is smaller, by its specification.
const SMALL: usize = 1024;
/// How many files are read at once: their content stays below what is kept of an output.
const BATCH: usize = 4000;
const SHOWN_PATH: usize = 200;

impl Transfer<'_> {
    /// A file among what `tips` have beyond `remote` that is a pointer, by its path.
    pub async fn lfs_file(&self, tips: &[&str], remote: &RemoteName) -> Done<Option<String>> {
        let beyond = format!("--remotes={remote}");
        let range = [tips, &["--not", &beyond]].concat();
        let filter = format!("--filter=combine:blob:limit={SMALL}+object:type=blob");
        let list = ["rev-list", "--objects", "--no-object-names", &filter];
        let files = self.git(&[&list[..], &range[..]].concat(), Limit::LOCAL).await?;
        if !files.ok() {
            let detail = "there are too many new files to look through; push from the host";
            return Err(TransferError::Git { what: "rev-list", detail: detail.into() });
        }
        let files = files.out();
        let files: Vec<&str> = files.lines().collect();
        for batch in files.chunks(BATCH) {
            if let Some(oid) = self.pointer(batch).await? {
                return self.path_of(&oid, &range).await.map(Some);
            }
        }
        Ok(None)
    }

    async fn pointer(&self, files: &[&str]) -> Done<Option<ObjectId>> {
        let input: String = files.iter().map(|oid| format!("{oid}\n")).collect();
        let output = self.feed("cat-file", &["cat-file", "--batch"], &input).await?.stdout;
        Ok(first_pointer(&output))
    }

    async fn path_of(&self, oid: &ObjectId, range: &[&str]) -> Done<String> {
        let find = format!("--find-object={oid}");
        let log = ["log", "--format=", "--name-only", "-z", "-m", "--max-count=1", &find];
        let log = self.must("log", &[&log[..], range].concat(), Limit::LOCAL).await?.out();
        let path = log.split('\0').find(|path| !path.trim().is_empty()).unwrap_or(oid.as_str());
        Ok(shortened(path.trim_start_matches('\n'), SHOWN_PATH))
    }
}

/// Reads what `cat-file --batch` prints: a line with id, kind and size, the content, a line's end.
fn first_pointer(mut output: &[u8]) -> Option<ObjectId> {
    while let Some(end) = output.iter().position(|b| *b == b'\n') {
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let mut words = head.split(' ');
        let (oid, kind, size) = (words.next()?, words.next()?, words.next());
        let size: usize = size.and_then(|n| n.parse().ok()).unwrap_or(0);
        let content = output.get(end + 1..end + 1 + size)?;
        if kind == "blob" && content.starts_with(POINTER) {
            return oid.parse().ok();
        }
        // What is missing has no content and no line's end after it.
        output =
            if kind == "missing" { &output[end + 1..] } else { output.get(end + 2 + size..)? };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_found_among_other_files() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
        let text = format!("{a} blob 3\nx\ny\n{b} blob {}\n{pointer}\n", pointer.len());
        assert_eq!(first_pointer(text.as_bytes()).unwrap().as_str(), b);
        let late = format!("{a} blob {}\n {pointer}\n{b} missing\n", pointer.len() + 1);
        assert_eq!(first_pointer(late.as_bytes()), None);
        assert_eq!(
            first_pointer(format!("{a} missing\n{b} commit 5\n{POINTER:?}").as_bytes()),
            None
        );
        assert_eq!(first_pointer(b""), None);
    }
}
