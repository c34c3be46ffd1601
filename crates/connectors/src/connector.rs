//! What a service is to the host: which program or address, which credentials, which operations.
//!
//! A connector is data and small pure functions. The relay's allowlist, the shims' help, the
//! check-up, the settings and the list people see are all made from these tables, so adding a
//! service is one file and one line in [`crate::registry`].

use crate::refusal::Refusal;
use protocol::question::{Fact, Tier};
use serde_json::Value as Json;

/// One service.
#[derive(Debug)]
pub struct Connector {
    /// `notion`; also the settings key and the second word of the method.
    pub service: &'static str,
    /// “Notion”.
    pub title: &'static str,
    /// What a person gets by enabling it, one sentence.
    pub about: &'static str,
    /// Whether boxes may use it before anybody said so.
    pub on_by_default: bool,
    pub means: Means,
    pub secrets: &'static [SecretUse],
    /// Reached as `integration.<service>.<op>`.
    pub ops: &'static [Op],
    /// Operations with methods of their own, for lists and help only.
    pub own_ops: &'static [OpInfo],
}

/// How the host does it.
#[derive(Debug)]
pub enum Means {
    /// By a program on the host.
    Cli(Program),
    /// By calling the service's API.
    Http(Api),
}

#[derive(Debug)]
pub struct Program {
    /// Looked up on the host's search path.
    pub name: &'static str,
    pub version_args: &'static [&'static str],
    /// Ends with 0 when there is a login.
    pub auth_args: &'static [&'static str],
    pub install_hint: &'static str,
    pub login_hint: &'static str,
    /// Variables with these beginnings are passed on from the host's own environment, to this
    /// program alone; whatever a connector sets must begin so, too.
    pub env_prefixes: &'static [&'static str],
}

#[derive(Debug)]
pub struct Api {
    /// `https://api.example.com/1`, without a slash at the end.
    pub base_url: &'static str,
    /// A read that shows whether the credentials are good: a path below the base.
    pub probe: &'static str,
    /// The header that carries the credentials, from their values in the order of `secrets`.
    pub authorize: fn(&[&str]) -> (&'static str, String),
    pub login_hint: &'static str,
}

/// A credential a service can use.
#[derive(Debug, Clone, Copy)]
pub struct SecretUse {
    /// `notion.token`.
    pub id: &'static str,
    /// The variable a host program reads it from; empty for an API.
    pub env: &'static str,
    /// “A personal API key from linear.app/settings/account/security”. Names that stand on the provider's
    /// page, for who has to find them there, are in “quotes”.
    pub about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct OpInfo {
    /// `page.create`.
    pub name: &'static str,
    pub write: bool,
    /// `--parent page:<id> [--content <text>]`.
    pub usage: &'static str,
    /// One line, starts with a verb.
    pub summary: &'static str,
}

#[derive(Debug)]
pub struct Op {
    pub info: OpInfo,
    pub parse: fn(&Input<'_>) -> Result<Prepared, Refusal>,
}

/// What a box sent for one operation. Sizes have been checked.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub args: &'a [String],
    pub stdin: Option<&'a str>,
}

/// What the host will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    pub action: Action,
    /// What a person is asked; a write always has it, a read never.
    pub ask: Option<Ask>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The host program with these arguments.
    Run {
        args: Vec<String>,
        stdin: Option<String>,
    },
    Call(ApiCall),
}

/// One request to an API. The path is built from checked parts and holds no query.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiCall {
    pub method: HttpMethod,
    /// Starts with a slash; below the API's base.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Json>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
    Put,
}

impl HttpMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
        }
    }
}

/// A question in the making, without who asks. Strings may still hold anything: whoever builds the
/// question makes them visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub tier: Tier,
    /// Starts with a verb: “Create a Notion page”.
    pub title: String,
    /// Where: “page 1a2b… in Notion”.
    pub target: String,
    pub facts: Vec<Fact>,
    /// The text that would be published.
    pub body: Option<String>,
    pub warnings: Vec<String>,
    pub remember: Option<Scopes>,
}

/// What a remembered yes may cover: exactly this place, or everything of the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes {
    pub exact: Scope,
    pub kind: Option<Scope>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Compared byte for byte with later questions.
    pub key: String,
    /// “comment on issue ENG-12 in Linear”.
    pub what: String,
}

impl Connector {
    pub fn op(&self, name: &str) -> Option<&'static Op> {
        self.ops.iter().find(|op| op.info.name == name)
    }

    /// Everything it can do, for lists and help.
    pub fn infos(&self) -> impl Iterator<Item = &'static OpInfo> + use<> {
        self.ops.iter().map(|op| &op.info).chain(self.own_ops)
    }

    pub fn program(&self) -> Option<&Program> {
        match &self.means {
            Means::Cli(program) => Some(program),
            Means::Http(_) => None,
        }
    }
}

impl Prepared {
    pub fn read(action: Action) -> Self {
        Self { action, ask: None }
    }

    pub fn write(action: Action, ask: Ask) -> Self {
        Self { action, ask: Some(ask) }
    }
}

/// A fact whose value is one of the box's words.
pub fn fact(label: &str, value: impl Into<String>) -> Fact {
    Fact { label: label.to_owned(), value: value.into() }
}
