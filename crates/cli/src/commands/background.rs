//! `agentbox claude -i …`: an agent that begins by itself, when there is room.

use crate::commands::agent::{How, variables};
use crate::commands::create;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::terminal;
use protocol::control::Request;
use protocol::queue::{MAX_PROMPT, SubmitJob, Submitted};
use protocol::sessions::Agent;
use protocol::text::visible;
use std::io::Read;

/// Flags of a background job.
#[derive(Debug, clap::Args)]
pub struct Background {
    /// Do this in the background
    ///
    /// A job makes the box and starts the agent with this text when there is room; `agentbox queue`
    /// shows it. - reads the text from standard input. It needs the agent's login in this terminal's
    /// environment; exit code 2 without.
    #[arg(
        short = 'i',
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with_all = ["latest", "resume", "plan", "attach_in", "inline"]
    )]
    initial_prompt: Option<String>,

    /// Begin the job only while fewer boxes than this run or are being made [default:
    /// queue.maxConcurrent]
    #[arg(long, value_name = "N", requires = "initial_prompt", value_parser = clap::value_parser!(u32).range(1..))]
    max_running: Option<u32>,

    /// Begin the job only while fewer agents than this work, however many boxes run; 0 is off
    /// [default: queue.maxWorking]
    #[arg(long, value_name = "N", requires = "initial_prompt")]
    max_working: Option<u32>,
}

impl Background {
    pub fn is_wanted(&self) -> bool {
        self.initial_prompt.is_some()
    }
}

pub fn submit(
    ctx: &Context,
    agent: Agent,
    create: create::Options,
    how: &How,
    background: Background,
    as_json: bool,
) -> Outcome {
    let prompt = match background.initial_prompt.unwrap_or_default() {
        dash if dash == "-" => from_stdin(std::io::stdin().lock())?,
        text => text,
    };
    let (cols, rows) = terminal::size();
    let submit = SubmitJob {
        agent,
        prompt,
        create: create::request(ctx, create)?,
        args: how.args.clone(),
        session_name: how.session_name.clone(),
        sync: !how.no_sync_config,
        skip_permissions: how.skip_permissions(agent)?,
        env: variables(agent),
        max_running: background.max_running,
        max_working: background.max_working,
        cols,
        rows,
    };
    let done: Submitted = ctx.client()?.call(&Request::SubmitJob(Box::new(submit)))?;
    if as_json {
        json::print(&ctx.ui, "job", &done)?;
    } else {
        ctx.ui.out(&render(&done))?;
    }
    Ok(Exit::OK)
}

fn render(done: &Submitted) -> String {
    let (id, full) = (&done.job.id, done.job.gate.in_words(done.busy));
    format!("job {id} queued ({full}); log: {}\n", visible(&done.job.log))
}

/// One byte more than may be is enough to see that it is too long; the host says so.
fn from_stdin(input: impl Read) -> Result<String, CommandError> {
    let mut text = String::new();
    input.take(MAX_PROMPT as u64 + 1).read_to_string(&mut text).map_err(|e| {
        CommandError::usage(format!("the prompt on standard input cannot be read: {e}"))
    })?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn boxes_16_51_one_line_says_that_it_is_queued() {
        let done = Submitted { job: samples::jobs().remove(0), busy: 3 };
        assert_eq!(
            render(&done),
            "job 0a1b2c3d4e5f queued (3/5 running); log: \
             /home/ada/.agentbox/logs/queue/0a1b2c3d4e5f.log\n"
        );
    }

    #[test]
    fn a_prompt_comes_from_a_pipe_without_its_last_line_end() {
        assert_eq!(from_stdin("fix\nit\n\n".as_bytes()).unwrap(), "fix\nit");
        assert!(from_stdin([0xff].as_slice()).is_err());
        let long = "x".repeat(MAX_PROMPT * 2);
        assert_eq!(from_stdin(long.as_bytes()).unwrap().len(), MAX_PROMPT + 1);
    }
}
