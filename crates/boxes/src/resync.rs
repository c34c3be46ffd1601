//! A box that was down takes over what is new on the host.
//!
//! The host says what is new and pins it; the box, whose repository is its own, does the rest and tells
//! what it kept. What it tells is its own word: bounded, and only ever shown.

use crate::answer::Answer;
use crate::create::json_line;
use crate::engine::limited;
use crate::exec::CtlCall;
use crate::files::{MADE_BY_TOOLS, Selection};
use crate::project::{canonical_folder, configured_root};
use crate::repo::{self, Found, News, Survey};
use crate::{Boxes, Error, Record, RepoRecord};
use futures_util::{StreamExt, stream};
use protocol::resync::{MOST_KEPT, ResyncPlan, ResyncRepo, Resynced};
use protocol::text::visible;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MAX_ANSWER: usize = 1024 * 1024;
const LONGEST_NAME: usize = 400;
const MOST_LEFT: usize = 20;
/// A box that takes longer is stalling.
const PATIENCE: Duration = Duration::from_secs(900);

impl Boxes {
    /// Brings what is new to a running box in which nobody works. The record has what it starts from
    /// now.
    pub async fn resync(&self, record: &Record) -> Result<(Resynced, Record), Error> {
        let survey = look(record).await?;
        let mut all = Vec::new();
        for found in &survey.repos {
            let Some(branch) = branch(record, found) else { continue };
            if let Some(news) = repo::news(found, &record.id).await? {
                all.push((found, branch, news));
            }
        }
        let tell = |(found, branch, news): &(&Found, String, News)| ResyncRepo {
            path: found.path.clone(),
            branch: branch.clone(),
            commit: news.commit.clone(),
            before: news.before.clone(),
            now: news.now.clone(),
        };
        let plan = json_line(&ResyncPlan { repos: all.iter().map(tell).collect() })?;
        let files = selection(&survey, &all).await?.archive().chunks;
        let files = stream::unfold(files, |mut files| async {
            files.recv().await.map(|chunk| (chunk, files))
        });
        let feed = stream::iter([Ok(plan)]).chain(files);
        let call = CtlCall { args: vec!["resync".to_owned()], ..CtlCall::default() };
        let mut answer = Answer::to("resync", MAX_ANSWER);
        let told = self.ctl(&record.container, call, feed, &mut answer);
        limited("bring what is new to the box", PATIENCE, told).await??;
        let told = bounded(answer.read()?);
        let mut record = record.clone();
        // Where the box left something as it was, it is not known what it starts from.
        for (found, _, news) in all.iter().filter(|_| told.left.is_empty()) {
            match record.nested.iter_mut().find(|nested| nested.path == found.path) {
                Some(nested) => nested.base = Some(news.commit.clone()),
                None if found.is_root() => record.base = Some(news.commit.clone()),
                None => {}
            }
        }
        Ok((told, record))
    }
}

/// The project as it is on the host now.
async fn look(record: &Record) -> Result<Survey, Error> {
    let folder = canonical_folder(&record.workspace)?;
    let root = configured_root(&folder).unwrap_or_else(|| folder.clone());
    let mut survey = repo::survey(&folder, &root, &MADE_BY_TOOLS).await?;
    for found in &mut survey.repos {
        let Some((made_from, base)) = known(record, found) else { continue };
        let (repo, from) =
            (&mut found.repo, record.from.as_ref().filter(|_| found.path.is_empty()));
        let name = match (from, &made_from.on) {
            (Some(name), _) => name.clone(),
            // The person is at something else now; what is on the disk belongs to that.
            (None, Some(on)) if repo.on.as_ref() != Some(on) => {
                repo.clean = true;
                on.clone()
            }
            _ => continue,
        };
        repo.base = repo::resolve(&repo.toplevel, &name).await?.or_else(|| base.clone());
    }
    survey.add_submodules().await?;
    Ok(survey)
}

/// What is on record of a repository of the box, and the commit it starts from.
fn known<'a>(record: &'a Record, found: &Found) -> Option<(&'a RepoRecord, &'a Option<String>)> {
    if found.is_root() {
        return record.repo.as_ref().map(|repo| (repo, &record.base));
    }
    let nested = record.nested.iter().find(|nested| nested.path == found.path)?;
    Some((&nested.repo, &nested.base))
}

/// The box's branch in a repository that it has and that is its to merge into. One the person gave it
/// is theirs to move.
fn branch(record: &Record, found: &Found) -> Option<String> {
    let (repo, branch) = if found.is_root() {
        (record.repo.as_ref()?, record.branch.as_ref().filter(|_| record.owns_branch())?)
    } else {
        // Made from what is committed alone, its submodules too.
        if record.branch_given {
            return None;
        }
        let nested = record.nested.iter().find(|nested| nested.path == found.path)?;
        (&nested.repo, &nested.branch)
    };
    // Another repository at the same place has its objects elsewhere than the box looks for them.
    (repo.common_dir == found.repo.common_dir).then(|| branch.clone())
}

async fn selection(survey: &Survey, all: &[(&Found, String, News)]) -> Result<Selection, Error> {
    let mut skip: HashSet<PathBuf> = survey.nested().map(PathBuf::from).collect();
    let untracked = all.iter().flat_map(|(found, _, news)| {
        news.carry.untracked.iter().map(|name| Path::new(&found.path).join(name))
    });
    let names = untracked.filter(|name| !skip.contains(name)).collect();
    let whole = survey.root().is_none();
    if whole {
        skip.extend(repo::ignored_by(&survey.workspace).await?);
    }
    Ok(Selection { root: survey.workspace.clone(), whole, skip, names })
}

/// What a box says, made harmless.
fn bounded(mut told: Resynced) -> Resynced {
    let short = |text: &String| visible(&text.chars().take(LONGEST_NAME).collect::<String>());
    told.kept = told.kept.iter().take(MOST_KEPT).map(short).collect();
    told.carried = 0;
    told.left = told.left.iter().take(MOST_LEFT).map(short).collect();
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_cannot_say_too_much() {
        let odd = Resynced {
            kept: vec!["a\u{1b}[2J".repeat(1000); 1000],
            left: vec!["x".into(); 1000],
            ..Resynced::default()
        };
        let told = bounded(odd);
        assert_eq!((told.kept.len(), told.left.len()), (MOST_KEPT, MOST_LEFT));
        assert!(told.kept.iter().all(|name| !name.contains('\u{1b}') && name.len() < 4000));
    }
}
