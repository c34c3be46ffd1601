//! What the host knows about a box, as far as the relay needs it. Nothing in it comes from the box.

use connectors::git::{BranchName, ObjectId, RemoteName};
use protocol::{BoxId, BoxName};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Registration {
    pub id: BoxId,
    pub name: BoxName,
    /// The project's folder name.
    pub project: String,
    /// The project's folder.
    pub project_root: PathBuf,
    /// The folder the box was made from: relative host paths are meant from here.
    pub workspace: PathBuf,
    pub worktrees: Vec<Worktree>,
}

/// One repository of a box.
#[derive(Debug, Clone)]
pub struct Worktree {
    /// `/workspace` or below.
    pub container_path: String,
    /// The branch the host gave the box; an in-box `git switch` changes nothing here.
    pub branch: BranchName,
    /// It was made for the box; else the person gave it one of theirs to work on.
    pub own_branch: bool,
    /// The branch its pushes go to at a remote, when the person chose another one.
    pub publish: Option<BranchName>,
    /// Where the box started; none in a repository without commits.
    pub base: Option<ObjectId>,
    /// The user's work tree, and the object store all its work trees share.
    pub host_repo: PathBuf,
    pub host_objects: PathBuf,
    pub object_format: String,
    /// Remotes as they were when the box was made.
    pub remotes: BTreeMap<RemoteName, RemoteUrls>,
    /// The clean transfer repository.
    pub transfer: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrls {
    pub fetch: String,
    pub push: String,
}

impl Worktree {
    /// The branch a push writes at the remote.
    pub fn published(&self) -> &BranchName {
        self.publish.as_ref().unwrap_or(&self.branch)
    }

    /// Its pushes go to a branch that was made for this box. A branch the person has given it to work
    /// on is still the person's.
    pub fn is_on_its_own_branch(&self) -> bool {
        self.publish.is_none() && self.has_own_branch()
    }

    pub fn has_own_branch(&self) -> bool {
        self.own_branch
    }
}

impl RemoteUrls {
    /// Where a push goes, for people: `github.com/acme/shop-api`, without user information, scheme
    /// and `.git`; or a path on this computer as it is.
    pub fn shown(&self) -> String {
        let url = self.push.as_str();
        let place = match url.split_once("://") {
            Some(("file", path)) => return protocol::text::visible(path),
            Some((_, rest)) => without_user(rest),
            // scp form, user@host:path; a path never has the colon before a slash
            None => match url.split_once(':') {
                Some((host, path)) if !host.contains('/') => {
                    format!("{}/{}", without_user(host), path.trim_start_matches('/'))
                }
                _ => return protocol::text::visible(url),
            },
        };
        let place = place.trim_end_matches('/');
        protocol::text::visible(place.strip_suffix(".git").unwrap_or(place))
    }
}

fn without_user(text: &str) -> String {
    let (host, path) = text.split_once('/').map_or((text, ""), |(h, p)| (h, p));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if path.is_empty() { host.to_owned() } else { format!("{host}/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let shown = |push: &str| RemoteUrls { fetch: String::new(), push: push.into() }.shown();
        assert_eq!(shown("https://me:pw@github.com/acme/shop.git"), "github.com/acme/shop");
        assert_eq!(shown("git@github.com:acme/shop.git"), "github.com/acme/shop");
        assert_eq!(shown("ssh://git@host:2222/acme/shop"), "host:2222/acme/shop");
        assert_eq!(shown("/srv/git/shop.git"), "/srv/git/shop.git");
        assert_eq!(shown("file:///srv/git/shop.git"), "/srv/git/shop.git");
    }
}
