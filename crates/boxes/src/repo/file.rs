//! One small file of a commit in the person's repository, never of a work tree.

use super::git::Git;
use crate::Error;
use std::path::Path;

/// A file as one commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    pub commit: String,
    pub bytes: Vec<u8>,
}

/// The file at the tip of a branch; none when there is no such branch or file, when it is a link, or
/// larger than this.
pub async fn committed_file(
    workspace: &Path,
    branch: &str,
    path: &str,
    most: u64,
) -> Result<Option<CommittedFile>, Error> {
    let what = "read a file of a commit";
    let tip = format!("refs/heads/{branch}^{{commit}}");
    let found = Git::new(what, workspace)?
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options", &tip])
        .ask()
        .await?;
    if found.code != 0 {
        return Ok(None);
    }
    let commit = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let listed = Git::new(what, workspace)?
        .args(["ls-tree", "--long", "--full-tree", &commit, "--", path])
        .run()
        .await?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut words = listed.split_whitespace();
    let (mode, kind) = (words.next(), words.next());
    let (Some(oid), Some(size)) = (words.next(), words.next()) else { return Ok(None) };
    let plain = matches!(mode, Some("100644" | "100755")) && kind == Some("blob");
    if !plain || !size.parse::<u64>().is_ok_and(|size| size <= most) {
        return Ok(None);
    }
    let bytes = Git::new(what, workspace)?.args(["cat-file", "blob", oid]).run().await?;
    Ok(Some(CommittedFile { commit, bytes }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Repo;
    use super::*;

    #[tokio::test]
    async fn a_file_of_a_commit_is_read_and_nothing_that_only_looks_like_one() {
        let repo = Repo::new();
        repo.write(".agentbox/egress.yaml", "domains: []\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "one"]);
        repo.write(".agentbox/egress.yaml", "domains: [evil.example]\n");
        let read = |branch: &'static str, most| {
            committed_file(repo.path(), branch, ".agentbox/egress.yaml", most)
        };
        let found = read("main", 100).await.unwrap().unwrap();
        assert_eq!(found.bytes, b"domains: []\n", "the work tree does not count");
        assert_eq!(read("main", 5).await.unwrap(), None);
        assert_eq!(read("other", 100).await.unwrap(), None);
        assert_eq!(read("--help", 100).await.unwrap(), None);
        std::fs::remove_file(repo.path().join(".agentbox/egress.yaml")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", repo.path().join(".agentbox/egress.yaml"))
            .unwrap();
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "two"]);
        assert_eq!(read("main", 100).await.unwrap(), None, "a link is no file");
    }
}
