//! Commands that do one thing to several boxes: each is tried, each is told, and one that failed is
//! the exit code.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};

/// Which boxes, as every such command takes them.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Numbers, names, ids, unique id prefixes, project/name or @project [default: the project's
    /// only box]
    #[arg(value_name = "BOX")]
    pub which: Vec<String>,
}

impl Which {
    /// One target per word, or the folder's only box.
    pub fn targets(self) -> Vec<Target> {
        if self.which.is_empty() {
            return vec![target(None)];
        }
        self.which.into_iter().map(|word| target(Some(word))).collect()
    }
}

/// Asks for each box and prints what `say` makes of it. With `--json` it is one `box`, or `boxes`
/// where several were named.
pub fn each(
    ctx: &Context,
    which: Which,
    as_json: bool,
    request: impl Fn(Target) -> Request,
    say: impl Fn(&BoxView) -> String,
) -> Outcome {
    let client = ctx.client()?;
    let targets = which.targets();
    let many = targets.len() > 1;
    let (mut done, mut failed): (Vec<BoxView>, Option<CommandError>) = (Vec::new(), None);
    for target in targets {
        match client.call::<BoxView>(&request(target)) {
            Ok(view) => {
                if !as_json {
                    ctx.ui.out(&say(&view))?;
                }
                done.push(view);
            }
            Err(error) if many => {
                let error = CommandError::from(error);
                ctx.ui.report(&error);
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if as_json {
        match done.as_slice() {
            [one] if !many => json::print(&ctx.ui, "box", one)?,
            all => json::print(&ctx.ui, "boxes", &all)?,
        }
    }
    Ok(failed.map_or(Exit::OK, |error| Exit(error.kind.exit_code())))
}
