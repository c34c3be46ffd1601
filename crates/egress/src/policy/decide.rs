//! From a request to a verdict. Pure: the same policy says the same about the same request.
//!
//! One record takes part, the one that names the host best; what broader records say is not asked, or a
//! wildcard would quietly widen a narrow host. Among its rules a deny wins outright, and then the one that
//! says most about the request.
//!
//! The surprising thing: rules that let through and rules that hold back read a path differently. To let
//! through, a path must be spelled as the rule has it. To hold back, it is enough that some server would
//! read it so: another case, an escape, a doubled slash or a parameter does not get around a deny.

use super::{
    Action, Denial, Layer, PathKind, PathRule, Policy, Record, Rule, RuleRef, Tls, Unmatched,
    Verdict,
};
use crate::host_name::HostName;
use crate::request::{CanonicalRequest, Scheme, Target, is_forbidden, is_veiled, obliging};
use protocol::egress::Reason;
use std::cmp::Reverse;

/// Where something else than the web answers, which could be made to understand a request.
pub const RISKY_PORTS: [u16; 4] = [22, 25, 465, 587];
/// Answered by the proxy itself.
pub const RESERVED: &str = "agentbox.internal";
/// The one reserved name that a policy may speak of: this computer's loopback.
pub const THIS_COMPUTER: &str = "host.agentbox.internal";

/// What is to become of a tunnel before anything is known of what goes through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectVerdict {
    /// A record speaks of the host and the port: look at each request.
    Inspect,
    /// Carried unseen, by this rule.
    Passthrough(RuleRef),
    /// No record speaks of the host, and requests will be asked about or only observed.
    Unlisted,
    /// Every request will be refused for this; it can be said inside the tunnel, where programs read it.
    Hopeless(Reason),
    /// Not even a tunnel.
    Refuse(Reason),
}

impl Policy {
    /// The one record that speaks of a host: its own, or the wildcard with the longest suffix.
    pub fn record(&self, host: &HostName) -> Option<(usize, &Record)> {
        // They are in that order.
        self.records.iter().enumerate().find(|(_, record)| record.host.covers(host))
    }

    pub fn at_connect(&self, host: &HostName, port: u16) -> ConnectVerdict {
        let whole = |denial: &&Denial| denial.rules.is_none();
        if self.denials(host).any(|denial| whole(&denial) && self.binds(denial)) {
            return ConnectVerdict::Hopeless(Reason::DeniedByRule);
        }
        let Some((at, record)) = self.record(host) else {
            return self.unlisted_connect(host, port);
        };
        let opens = |rule: &Rule| rule.action != Action::Deny && rule.ports.contains(&port);
        let Some(rule) = record.rules.iter().position(opens) else {
            return if self.observe && !RISKY_PORTS.contains(&port) && !is_reserved(host) {
                ConnectVerdict::Unlisted
            } else {
                ConnectVerdict::Refuse(Reason::PortNotAllowed)
            };
        };
        if record.tls == Tls::Intercept {
            return ConnectVerdict::Inspect;
        }
        // Nothing in it will be seen, so what denies a part denies the whole.
        let denies = |rule: &Rule| {
            rule.schemes.contains(&Scheme::Https)
                && (rule.ports.is_empty() || rule.ports.contains(&port))
        };
        let partly = |denial: &Denial| denial.rules.iter().flatten().any(denies);
        if self.denials(host).any(|denial| partly(denial) && self.binds(denial)) {
            return ConnectVerdict::Refuse(Reason::DeniedByRule);
        }
        ConnectVerdict::Passthrough(RuleRef { record: at, rule })
    }

    fn unlisted_connect(&self, host: &HostName, port: u16) -> ConnectVerdict {
        let usual = port == Scheme::Https.port() || port == Scheme::Http.port();
        if is_reserved(host) {
            return ConnectVerdict::Refuse(Reason::HostNotAllowed);
        }
        match self.unmatched {
            _ if self.observe && !RISKY_PORTS.contains(&port) => ConnectVerdict::Unlisted,
            _ if !usual => ConnectVerdict::Refuse(Reason::HostNotAllowed),
            Unmatched::Ask => ConnectVerdict::Unlisted,
            Unmatched::Deny => ConnectVerdict::Hopeless(Reason::HostNotAllowed),
        }
    }

    pub fn decide(&self, request: &CanonicalRequest) -> Verdict {
        // Also for those who are only observed: an echo would give them what was put in.
        if is_forbidden(&request.method) {
            return Verdict::Deny(Reason::MethodForbidden, None);
        }
        let verdict = match self.denial(request) {
            Some(denial) if self.binds(denial) => {
                return Verdict::Deny(Reason::DeniedByRule, None);
            }
            Some(_) => Verdict::Deny(Reason::DeniedByRule, None),
            None if self.may_be_denied(request) => Verdict::Deny(Reason::AmbiguousPath, None),
            None => self.by_record(request),
        };
        let may_watch = !RISKY_PORTS.contains(&request.port) && !is_reserved(&request.host);
        match verdict {
            Verdict::Deny(reason, _) if self.observe && may_watch => Verdict::Observe(reason),
            // Nobody is asked, so no credential of that rule goes along.
            Verdict::Ask(Some(_)) if self.observe => Verdict::Observe(Reason::Observed),
            Verdict::Ask(None) if self.observe => Verdict::Observe(Reason::HostNotAllowed),
            verdict => verdict,
        }
    }

    /// The denial that speaks of a request, for saying why.
    pub fn denial(&self, request: &CanonicalRequest) -> Option<&Denial> {
        self.denials(&request.host).find(|denial| match &denial.rules {
            None => true,
            Some(rules) => rules.iter().any(|rule| holds_back(rule, request)),
        })
    }

    /// A denial would speak of the request if its path were read in another way.
    fn may_be_denied(&self, request: &CanonicalRequest) -> bool {
        let rules = self.denials(&request.host).flat_map(|denial| denial.rules.iter().flatten());
        is_ambiguous(request, rules)
    }

    fn denials(&self, host: &HostName) -> impl Iterator<Item = &Denial> {
        let host = host.clone();
        self.deny.iter().filter(move |denial| denial.host.covers(&host))
    }

    /// What is compiled in holds for everyone, a person's own denies not for a box that is only observed.
    fn binds(&self, denial: &Denial) -> bool {
        !self.observe || denial.origin.layer == Layer::Floor
    }

    fn by_record(&self, request: &CanonicalRequest) -> Verdict {
        let Some((at, record)) = self.record(&request.host) else { return self.unlisted(request) };
        let rule = |rule| RuleRef { record: at, rule };
        match record.choose(request) {
            Ok((index, Action::Allow)) => Verdict::Allow(rule(index)),
            Ok((index, Action::Ask)) => Verdict::Ask(Some(rule(index))),
            Ok((index, Action::Deny)) => Verdict::Deny(Reason::DeniedByRule, Some(rule(index))),
            Err(Reason::NoRuleMatched) if self.unmatched == Unmatched::Ask => Verdict::Ask(None),
            Err(reason) => Verdict::Deny(reason, None),
        }
    }

    fn unlisted(&self, request: &CanonicalRequest) -> Verdict {
        let usual = request.port == request.scheme.port();
        if self.unmatched == Unmatched::Ask && usual && !is_reserved(&request.host) {
            return Verdict::Ask(None);
        }
        Verdict::Deny(Reason::HostNotAllowed, None)
    }
}

/// A name that the proxy keeps for itself.
pub fn is_reserved_name(host: &str) -> bool {
    host == RESERVED || host.strip_suffix(RESERVED).is_some_and(|rest| rest.ends_with('.'))
}

pub fn is_reserved(host: &HostName) -> bool {
    is_reserved_name(host.as_str())
}

impl Record {
    /// The rule that decides, and what it says.
    fn choose(&self, request: &CanonicalRequest) -> Result<(usize, Action), Reason> {
        if is_ambiguous(request, self.rules.iter()) {
            return Err(Reason::AmbiguousPath);
        }
        let rules = || self.rules.iter().enumerate();
        if let Some((index, _)) =
            rules().find(|(_, rule)| rule.action == Action::Deny && holds_back(rule, request))
        {
            return Ok((index, Action::Deny));
        }
        let fits = |rule: &Rule| match rule.action {
            Action::Deny => false,
            // A question is easily answered; a way around it would be none.
            Action::Ask => rule.fits(request) || holds_back(rule, request),
            Action::Allow => rule.fits(request),
        };
        let mut fitting: Vec<(usize, &Rule)> = rules().filter(|(_, rule)| fits(rule)).collect();
        if fitting.is_empty() {
            return Err(self.why_none(request));
        }
        // One that asks stays: what is to be asked about is not let through by a wider rule.
        fitting
            .retain(|(_, rule)| rule.websocket || !request.websocket || rule.action == Action::Ask);
        let best = |of: &dyn Fn(&Rule) -> bool| {
            let of = fitting.iter().filter(|(_, rule)| of(rule));
            of.max_by_key(|(index, rule)| (rule.says(), Reverse(*index))).copied()
        };
        let chosen = match best(&|rule| !rule.grant) {
            Some((at, rule)) if rule.action == Action::Allow => Some((at, rule)),
            Some((_, rule)) if request.websocket && !rule.websocket => None,
            // An answer speaks for the credential that was shown with the question, and for no other.
            Some((at, rule)) => {
                best(&|grant| grant.grant && grant.goes_with(rule)).or(Some((at, rule)))
            }
            None => best(&|rule| rule.grant && rule.goes_alone()),
        };
        chosen.map(|(at, rule)| (at, rule.action)).ok_or(Reason::WebsocketNotPermitted)
    }

    fn why_none(&self, request: &CanonicalRequest) -> Reason {
        let mut open: Vec<_> =
            self.rules.iter().filter(|rule| rule.action != Action::Deny).collect();
        if open.is_empty() {
            return Reason::NoRuleMatched;
        }
        open.retain(|rule| rule.schemes.contains(&request.scheme));
        if open.is_empty() {
            return Reason::SchemeNotPermitted;
        }
        let here = open.iter().any(|rule| rule.ports.contains(&request.port));
        if here { Reason::NoRuleMatched } else { Reason::PortNotAllowed }
    }
}

impl Rule {
    /// All that is set fits, as it is spelled. Of WebSockets nothing is said here.
    pub fn fits(&self, request: &CanonicalRequest) -> bool {
        self.fits_but_path(request)
            && self.path.as_ref().is_none_or(|path| path.fits(&request.target))
            && self.ports.contains(&request.port)
    }

    fn fits_but_path(&self, request: &CanonicalRequest) -> bool {
        self.schemes.contains(&request.scheme)
            && self.methods.as_ref().is_none_or(|all| all.contains(&request.method))
            && self
                .query
                .as_ref()
                .is_none_or(|query| request.target.query_map().as_ref() == Some(query))
    }

    /// How much a rule says; more goes before less.
    fn says(&self) -> impl Ord {
        let path = self.path.as_ref().map(|path| match path.kind {
            PathKind::Exact => (1, 0),
            PathKind::Prefix | PathKind::Pattern => (0, path.text.len()),
        });
        let usual = self.schemes.iter().map(|scheme| scheme.port()).collect();
        (
            path,
            self.query.is_some(),
            self.methods.is_some(),
            self.ports != usual,
            self.transform.is_some(),
            self.origin.layer,
            self.action,
        )
    }
}

impl PathRule {
    /// As it is spelled. What is veiled must be spelled by the rule itself.
    pub fn fits(&self, target: &Target) -> bool {
        let path = target.path();
        let same = |a: &str| {
            if self.ignore_case { a.eq_ignore_ascii_case(&self.text) } else { a == self.text }
        };
        match self.kind {
            PathKind::Exact => same(path),
            PathKind::Pattern => self.reaches(target),
            PathKind::Prefix => match path.split_at_checked(self.text.len()) {
                Some((start, rest)) => same(start) && !is_veiled(rest) && !is_split(start, rest),
                None => false,
            },
        }
    }

    /// As some server might read it.
    fn reaches(&self, target: &Target) -> bool {
        let (path, text) = (obliging(target.path()), obliging(&self.text));
        // Servers leave a last slash off, or add it.
        let short = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
        match self.kind {
            PathKind::Exact => short(&path) == short(&text),
            PathKind::Prefix => path.starts_with(&text) || path == short(&text),
            PathKind::Pattern => is_at_or_below(&path, &text),
        }
    }
}

/// A pattern's path, or one below it. Each star takes one letter or more.
fn is_at_or_below(path: &[u8], pattern: &[u8]) -> bool {
    match pattern.iter().position(|b| *b == b'*') {
        None => {
            path.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        }
        Some(star) => {
            let Some(rest) = path.strip_prefix(&pattern[..star]) else { return false };
            (1..=rest.len()).any(|at| is_at_or_below(&rest[at..], &pattern[star + 1..]))
        }
    }
}

/// What would be decoded twice begins before the rest.
fn is_split(start: &str, rest: &str) -> bool {
    let hex = |two: &[u8]| two.iter().all(u8::is_ascii_hexdigit);
    start.ends_with("%25") && rest.as_bytes().get(..2).is_some_and(hex)
}

/// A rule that denies reaches every reading of a path.
fn holds_back(rule: &Rule, request: &CanonicalRequest) -> bool {
    rule.fits_but_path(request)
        && (rule.ports.is_empty() || rule.ports.contains(&request.port))
        && rule.path.as_ref().is_none_or(|path| path.reaches(&request.target))
}

/// A path that can be read in two ways, where one of these rules would tell them apart. A rule for another
/// scheme, method or port would not.
fn is_ambiguous<'a>(request: &CanonicalRequest, rules: impl Iterator<Item = &'a Rule>) -> bool {
    let target = &request.target;
    if !target.is_dotted() && !target.is_veiled() {
        return false;
    }
    let mut constrained = false;
    for rule in rules.filter(|rule| rule.fits_but_path(request)) {
        let Some(path) = &rule.path else { continue };
        if !target.is_dotted() && path.fits(target) {
            return false;
        }
        constrained = true;
    }
    constrained
}
