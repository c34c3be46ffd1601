//! `agentbox egress check`: what would become of a request, without sending it.

use super::of::Of;
use crate::context::Context;
use crate::error::{Exit, Outcome};
use crate::json;
use crate::ui::Look;
use protocol::control::Request;
use protocol::egress::{EgressChecked, EgressVerdict};
use protocol::text::visible;
use std::fmt::Write;

/// Say what would become of a request, without sending it
///
/// Names the rule that decides, with the line it is from, and the credentials that would be put in. Exits
/// with 0 when it passes, 3 when it is stopped, 4 when you would be asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress check https://api.example.com/v1/jobs
  agentbox egress check https://api.example.com/v1/jobs -X POST fix-login
  agentbox egress check https://api.example.com/ --mode locked")]
pub struct Args {
    /// The address, such as https://api.example.com/v1/jobs
    #[arg(value_name = "URL")]
    url: String,

    /// The request's method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,

    #[command(flatten)]
    of: Of,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let (of, whose) = args.of.find(&client)?;
    let method = args.method.to_ascii_uppercase();
    let request = Request::CheckEgress { of, url: args.url, method };
    let checked: EgressChecked = client.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "check", &checked)?;
        return Ok(exit(checked.verdict));
    }
    ctx.ui.say(&format!("For {}", whose.in_words(None)));
    ctx.ui.out(&render(ctx.ui.out, &checked))?;
    if let Some(hint) = &checked.hint {
        ctx.ui.hint(&visible(hint));
    }
    Ok(exit(checked.verdict))
}

fn exit(verdict: EgressVerdict) -> Exit {
    match verdict {
        EgressVerdict::Allow | EgressVerdict::Observe => Exit::OK,
        EgressVerdict::Deny => Exit(3),
        EgressVerdict::Ask => Exit(4),
    }
}

fn render(look: Look, of: &EgressChecked) -> String {
    let word = match of.verdict {
        EgressVerdict::Allow => look.good("allow"),
        EgressVerdict::Observe => look.warn("observe"),
        EgressVerdict::Ask => look.warn("ask"),
        EgressVerdict::Deny => look.bad("deny"),
    };
    let mut text = format!("{word}  {} {}\n", visible(&of.method), visible(&of.url));
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "  {label:<7} {value}");
    };
    if let Some(reason) = of.reason {
        row("reason", reason.code());
    }
    if let Some(rule) = &of.rule {
        let (host, origin) = (visible(&rule.host), visible(&rule.origin));
        row("rule", &format!("{host}, number {} ({origin})", rule.index + 1));
    }
    if !of.injects.is_empty() {
        let names: Vec<_> = of.injects.iter().map(ToString::to_string).collect();
        row("puts in", &names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use EgressVerdict::{Allow, Ask, Deny, Observe};
    use protocol::egress::{Reason, RuleSeen};

    #[test]
    fn a_verdict_names_what_decides() {
        let allow = EgressChecked {
            verdict: EgressVerdict::Allow,
            reason: Some(Reason::RuleMatched),
            method: "GET".into(),
            url: "https://github.com/acme/shop-api.git/info/refs".into(),
            rule: Some(RuleSeen {
                host: "github.com".into(),
                index: 0,
                origin: "project:egress.yaml:7".into(),
            }),
            injects: vec!["github.push".parse().unwrap()],
            hint: None,
        };
        let deny = EgressChecked {
            verdict: EgressVerdict::Deny,
            reason: Some(Reason::HostNotAllowed),
            url: "https://paste.example/\u{202e}".into(),
            rule: None,
            injects: vec![],
            ..allow.clone()
        };
        insta::assert_snapshot!(render(Look::PLAIN, &allow) + &render(Look::PLAIN, &deny));
        assert_eq!([Allow, Observe, Deny, Ask].map(|v| exit(v).0), [0, 0, 3, 4]);
    }
}
