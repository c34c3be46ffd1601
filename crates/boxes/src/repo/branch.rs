//! The branch a box commits to.

use super::git::Git;
use crate::Error;
use protocol::BoxName;
use std::collections::HashSet;
use std::path::Path;

/// Below this, branches are the boxes' own.
pub const OWN: &str = "agentbox/";

/// What a box's branch is called in a repository below its workspace: `<name>--<path>`.
pub fn nested_name(name: &BoxName, path: &str) -> String {
    let mut text = format!("{name}--");
    let mut gap = false;
    for c in path.chars() {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            text.extend(gap.then_some('_'));
            text.push(c);
            gap = false;
        } else {
            gap = true;
        }
    }
    // Git takes neither of these in a name.
    text.replace("..", "_").trim_end_matches(['.', '_']).trim_end_matches(".lock").to_owned()
}

/// `agentbox/<name>`, with `-2` to `-100` appended while the host has such a branch or another
/// box's record names it (`taken`): a box that has not committed yet has no branch on the host.
pub async fn choose_branch(
    repository: &Path,
    name: &str,
    taken: &[String],
) -> Result<String, Error> {
    let args = ["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/agentbox"];
    let stdout = Git::new("list branches", repository)?.args(args).run().await?;
    let stdout = String::from_utf8_lossy(&stdout);
    let mut used: HashSet<&str> = stdout.lines().collect();
    if used.contains("agentbox") {
        return Err(Error::BranchInTheWay);
    }
    used.extend(taken.iter().map(String::as_str));
    free_branch(name, &used).ok_or_else(|| Error::NoFreeBranch(name.to_owned()))
}

fn free_branch(name: &str, used: &HashSet<&str>) -> Option<String> {
    // A branch below a candidate (`agentbox/x/y`) is in its way just as the candidate itself is.
    let free = |branch: &String| {
        let below = format!("{branch}/");
        !used.iter().any(|other| *other == branch.as_str() || other.starts_with(&below))
    };
    let first = format!("agentbox/{name}");
    std::iter::once(first.clone()).chain((2..=100).map(|n| format!("{first}-{n}"))).find(free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::testing::Repo;

    #[tokio::test]
    async fn boxes_16_08_a_taken_branch_gets_a_number() {
        let repo = Repo::new();
        repo.commit("a", "one");
        let choose = |taken: Vec<String>| {
            let path = repo.path().to_owned();
            async move { choose_branch(&path, "x", &taken).await }
        };
        assert_eq!(choose(vec![]).await.unwrap(), "agentbox/x");
        repo.git(&["branch", "agentbox/x"]);
        assert_eq!(choose(vec![]).await.unwrap(), "agentbox/x-2");
        assert_eq!(choose(vec!["agentbox/x-2".into()]).await.unwrap(), "agentbox/x-3");
        repo.git(&["branch", "agentbox/x-2/deeper"]);
        assert_eq!(choose(vec![]).await.unwrap(), "agentbox/x-3");
    }

    #[tokio::test]
    async fn a_branch_named_agentbox_is_in_the_way() {
        let repo = Repo::new();
        repo.commit("a", "one");
        repo.git(&["branch", "agentbox"]);
        let error = choose_branch(repo.path(), "x", &[]).await.unwrap_err();
        assert!(matches!(error, Error::BranchInTheWay));
    }

    #[test]
    fn a_path_becomes_a_part_of_a_branch() {
        let name: BoxName = "fix".parse().unwrap();
        for (path, branch) in [
            ("api", "fix--api"),
            ("libs/my lib", "fix--libs_my_lib"),
            ("a//ü/b", "fix--a_b"),
            ("x..y", "fix--x_y"),
            ("odd.lock", "fix--odd"),
            (".hidden/", "fix--.hidden"),
        ] {
            assert_eq!(nested_name(&name, path), branch, "{path}");
        }
    }

    #[test]
    fn after_a_hundred_it_gives_up() {
        let names: Vec<String> = std::iter::once("agentbox/x".to_owned())
            .chain((2..=100).map(|n| format!("agentbox/x-{n}")))
            .collect();
        let used: HashSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(free_branch("x", &used), None);
        let fewer: HashSet<&str> =
            used.into_iter().filter(|name| !name.ends_with("-100")).collect();
        assert_eq!(free_branch("x", &fewer).as_deref(), Some("agentbox/x-100"));
    }
}
