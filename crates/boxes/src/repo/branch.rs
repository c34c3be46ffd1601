//! The branch a box commits to.

use super::git::Git;
use crate::Error;
use protocol::BoxName;
use std::collections::HashSet;
use std::path::Path;

/// `agentbox/<name>`, with `-2` to `-100` appended while the host has such a branch or another
/// box's record names it (`taken`): a box that has not committed yet has no branch on the host.
pub async fn choose_branch(
    repository: &Path,
    name: &BoxName,
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
    free_branch(name.as_str(), &used).ok_or_else(|| Error::NoFreeBranch(name.to_string()))
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
        let name: BoxName = "x".parse().unwrap();
        let choose = |taken: Vec<String>| {
            let (path, name) = (repo.path().to_owned(), name.clone());
            async move { choose_branch(&path, &name, &taken).await }
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
        let error = choose_branch(repo.path(), &"x".parse().unwrap(), &[]).await.unwrap_err();
        assert!(matches!(error, Error::BranchInTheWay));
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
