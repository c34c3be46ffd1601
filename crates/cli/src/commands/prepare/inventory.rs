//! `agentbox prepare` without a flag: which box images there are.

use super::{NOBODY, image_spec};
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::question::size;
use crate::ui::Look;
use crate::{json, table, time};
use boxes::inventory::Made;
use boxes::{Boxes, Engine, Stage};
use jiff::Timestamp;
use protocol::Millis;
use serde::Serialize;
use settings::Settings;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    stage: Option<&'static str>,
    tag: String,
    /// What new boxes of this stage use; others are left from earlier versions.
    current: bool,
    present: bool,
    /// `ready`, `missing`, `stale` (another version's is there) or `old`.
    state: &'static str,
    size: Option<u64>,
    made_at: Option<Millis>,
    /// The agents in it, by name.
    versions: BTreeMap<String, String>,
}

impl From<Made> for Row {
    fn from(made: Made) -> Self {
        Self {
            stage: made.stage.map(Stage::as_str),
            tag: made.tag,
            current: made.current,
            present: made.image.is_some(),
            state: match (made.image.is_some(), made.current) {
                (false, _) => "missing",
                (true, true) => "ready",
                (true, false) => "old",
            },
            size: made.image.as_ref().map(|image| image.size),
            made_at: made.image.as_ref().map(|image| image.made_at),
            versions: made.image.into_iter().flat_map(|image| image.versions).collect(),
        }
    }
}

pub fn run(ctx: &Context, settings: &Settings, as_json: bool) -> Outcome {
    // Fails here, with its hint, when agentbox-ctl is missing.
    let any = image_spec(settings, Stage::Core)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let made = runtime.block_on(async {
        let engine = Engine::connect(settings.engine.host.as_deref()).await?;
        let of = |stage| boxes::ImageSpec { stage, ..any.clone() };
        let made = Boxes::new(engine, NOBODY).inventory(of).await?;
        Ok::<_, CommandError>(made)
    })?;
    let rows = all(made);
    if as_json {
        json::print(&ctx.ui, "images", &rows)?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, &rows, Timestamp::now()))?;
        let used = host::daemons::stage(settings).as_str();
        let ready = |row: &Row| row.current && row.present && row.stage == Some(used);
        if !rows.iter().any(ready) {
            ctx.ui.say(&format!("\nNew boxes use {used}; the first one builds it."));
            ctx.ui.hint("agentbox prepare --build builds it now");
        }
    }
    Ok(Exit::OK)
}

/// What is missing has been there once where an old image of its stage is left.
fn all(made: Vec<Made>) -> Vec<Row> {
    let mut rows: Vec<Row> = made.into_iter().map(Row::from).collect();
    let old: Vec<_> = rows.iter().filter(|row| !row.current).filter_map(|row| row.stage).collect();
    let missing = rows.iter_mut().filter(|row| !row.present);
    for row in missing.filter(|row| row.stage.is_some_and(|stage| old.contains(&stage))) {
        row.state = "stale";
    }
    rows
}

/// What each stage is for.
fn holds(stage: Option<&str>) -> &'static str {
    match stage {
        Some("core") => "shell, git, tmux",
        Some("desktop") => "and a screen",
        Some("full") => "and the agents",
        _ => "",
    }
}

fn render(look: Look, rows: &[Row], now: Timestamp) -> String {
    let line = |row: &Row| {
        let versions: Vec<String> = row.versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
        vec![
            row.stage.unwrap_or("-").to_owned(),
            row.tag.clone(),
            row.state.to_owned(),
            row.size.map_or_else(String::new, size),
            row.made_at.map_or_else(String::new, |at| time::ago(now, at)),
            if versions.is_empty() { holds(row.stage).to_owned() } else { versions.join(", ") },
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    table::render(look, &["STAGE", "TAG", "STATE", "SIZE", "BUILT", "WITH"], &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use boxes::inventory::Details;

    #[test]
    fn what_there_is() {
        let now: Timestamp = "2026-03-04T05:06:07Z".parse().unwrap();
        let ms = u64::try_from(now.as_millisecond()).unwrap();
        let made =
            |stage, tag: &str, current, image| Made { stage, tag: tag.into(), current, image };
        let details = |versions: &[(&str, &str)]| {
            let versions = versions.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
            Some(Details { size: 2_610_000_000, made_at: ms - 7_200_000, versions })
        };
        let rows = [
            made(Some(Stage::Core), "agentbox/box:core-1", true, None),
            made(
                Some(Stage::Full),
                "agentbox/box:full-1",
                true,
                details(&[("claude", "2.1.0"), ("codex", "0.9.1")]),
            ),
            made(Some(Stage::Desktop), "agentbox/box:desktop-2", true, None),
            made(Some(Stage::Desktop), "agentbox/box:desktop-1", false, details(&[])),
            made(None, "agentbox/box:0123", false, details(&[])),
        ];
        let rows = all(rows.into());
        assert_eq!(rows[2].state, "stale");
        insta::assert_snapshot!(render(Look::PLAIN, &rows, now));
    }
}
