//! `agentbox-ctl render <src>`: a file with its placeholders and texts replaced, and with secrets that
//! are made up in the box.
//!
//! The file that is written is there whole or not at all, keeps its mode, and is not touched when
//! nothing in it changes: whoever watches it does not start over for nothing.

use crate::error::{Doing, Error, Result};
use crate::supervisor::{client::INVALID, config};
use crate::{identity, places, secret};
use project::render::{LARGEST, Values, render};
use project::{FILE_NAME, Pattern, Project, Replaced, Rule};
use protocol::exit;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const USE: &str = "use 'agentbox-ctl render <src> [--out <path> | --in-place] [--env] [--rules a,b] \
    [--rule 'from=>to'] [--rule-regex 'pattern=>to']'.";
/// What stands for a secret, before its name if it has one.
const SECRET: &str = "AGENTBOX_AUTO_SECRET";

#[derive(Default)]
struct Wanted {
    source: PathBuf,
    /// None means standard output.
    to: Option<PathBuf>,
    whole: bool,
    sets: Vec<String>,
    /// As they were typed.
    rules: Vec<Rule>,
    config: PathBuf,
    state: PathBuf,
}

pub fn run(args: &[OsString]) -> Result<i32> {
    let wanted = match wanted(args) {
        Ok(wanted) => wanted,
        Err(why) => {
            crate::complain(&format!("agentbox-ctl: {why}"));
            return Ok(INVALID);
        }
    };
    let told = identity::read();
    let values = Values::from_env(|name| identity::variable(&told, name));
    let (text, secret) = rendered(&wanted, &values)?;
    match &wanted.to {
        Some(to) => write(to, &text, secret)?,
        None => io::stdout().write_all(text.as_bytes()).doing(|| "write standard output")?,
    }
    Ok(exit::OK)
}

fn wanted(args: &[OsString]) -> std::result::Result<Wanted, String> {
    let mut wanted = Wanted {
        config: places::workspace().join(FILE_NAME),
        state: secret::state(),
        ..Wanted::default()
    };
    let (mut source, mut out, mut in_place) = (None, None, false);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.to_str().ok_or(USE)?;
        let (flag, given) = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (text, None),
        };
        let value = || {
            let next = || words.as_slice().first()?.to_str().map(str::to_owned);
            given.clone().or_else(next).ok_or_else(|| format!("{flag} needs a value; {USE}"))
        };
        let mut takes_next = given.is_none();
        match flag {
            "--out" => out = Some(PathBuf::from(value()?)),
            "--rules" => wanted.sets.extend(value()?.split(',').map(|name| name.trim().to_owned())),
            "--rule" => wanted.rules.push(rule(&value()?, |from| Ok(Replaced::Text(from.into())))?),
            "--rule-regex" => wanted.rules.push(rule(&value()?, matches)?),
            "--config" => wanted.config = PathBuf::from(value()?),
            "--state-dir" => wanted.state = PathBuf::from(value()?),
            _ => {
                takes_next = false;
                match flag {
                    "--env" => wanted.whole = true,
                    "--in-place" => in_place = true,
                    _ if flag.starts_with('-') => return Err(format!("{flag} is unknown; {USE}")),
                    _ if source.is_none() => source = Some(PathBuf::from(text)),
                    _ => return Err(USE.to_owned()),
                }
            }
        }
        if takes_next {
            words.next();
        }
    }
    wanted.source = source.ok_or(USE)?;
    wanted.to = match (out, in_place) {
        (Some(_), true) => return Err("--out and --in-place exclude each other.".to_owned()),
        (None, true) => Some(wanted.source.clone()),
        (out, false) => out,
    };
    Ok(wanted)
}

fn rule(
    text: &str,
    of: impl Fn(&str) -> std::result::Result<Replaced, String>,
) -> std::result::Result<Rule, String> {
    match text.split_once("=>") {
        Some((from, to)) if !from.is_empty() => Ok(Rule { from: of(from)?, to: to.to_owned() }),
        _ => Err(format!("a rule is 'from=>to', not '{}'.", protocol::text::visible(text))),
    }
}

fn matches(pattern: &str) -> std::result::Result<Replaced, String> {
    let pattern = Pattern::new(pattern).map_err(|e| e.to_string())?;
    Ok(Replaced::Matches { pattern, global: true })
}

/// The text, and whether there is a secret in it.
fn rendered(wanted: &Wanted, values: &Values) -> Result<(String, bool)> {
    let shown = wanted.source.display();
    let mut bytes = Vec::new();
    let file = File::open(&wanted.source).doing(|| format!("read {shown}"))?;
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes).doing(|| format!("read {shown}"))?;
    if bytes.len() > LARGEST {
        return Err(Error::Failed(format!("{shown} is larger than {} MiB.", LARGEST >> 20)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::Failed(format!("{shown} is no UTF-8 text and is left as it is.")))?;
    let sets = sets(wanted)?;
    let rules = sets.iter().chain(&wanted.rules);
    let done = render(&text, wanted.whole, rules, values)
        .map_err(|e| Error::Failed(format!("{shown}: {e}.")))?;
    for name in &done.without_value {
        crate::complain(&format!(
            "agentbox-ctl: {{{{{name}}}}} has no value here and is left as it is."
        ));
    }
    with_secrets(&done.text, &secret::dir(&wanted.state))
}

/// The rules of the named sets, in the order they were asked for.
fn sets(wanted: &Wanted) -> Result<Vec<Rule>> {
    if wanted.sets.is_empty() {
        return Ok(Vec::new());
    }
    let text = config::read(&wanted.config).map_err(Error::Failed)?.unwrap_or_default();
    let parsed = Project::parse_in_box(&text);
    let Some(project) = parsed.project else {
        let lines: Vec<String> = parsed.errors.iter().map(|p| p.line(FILE_NAME)).collect();
        return Err(Error::Failed(lines.join("\n")));
    };
    let mut rules = Vec::new();
    for name in &wanted.sets {
        let shown = protocol::text::visible(name);
        let Some(set) = project.replacements.iter().find(|set| set.name == *name) else {
            let known: Vec<&str> = project.replacements.iter().map(|s| s.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let text = format!("replacements has no set '{shown}'; there are: {known}.");
            return Err(Error::Failed(text));
        };
        if !set.unknown.is_empty() {
            let text =
                format!("replacements.{shown} has unknown keys: {}.", set.unknown.join(", "));
            return Err(Error::Failed(text));
        }
        rules.extend(set.rules.iter().cloned());
    }
    Ok(rules)
}

/// Puts secrets where they are asked for. Without one in the text nothing is read or written.
fn with_secrets(text: &str, dir: &Path) -> Result<(String, bool)> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut any) = (text, false);
    while let Some(at) = rest.find("{{") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some((name, after)) = asked(from) {
            any = true;
            out.push_str(&if name.is_empty() {
                secret::fresh().doing(|| "make up a secret")?
            } else {
                secret::kept(dir, name)?
            });
            rest = after;
        } else {
            out.push('{');
            rest = &from[1..];
        }
        if out.len() > LARGEST {
            return Err(Error::Failed(format!("the text grows beyond {} MiB.", LARGEST >> 20)));
        }
    }
    out.push_str(rest);
    Ok((out, any))
}

/// The name of the secret that is asked for here, empty when it has none, and what comes after.
fn asked(from: &str) -> Option<(&str, &str)> {
    let (inner, after) = from.strip_prefix("{{")?.split_once("}}")?;
    let name = inner.trim_matches([' ', '\t']).strip_prefix(SECRET)?;
    let Some(name) = name.strip_prefix(':') else {
        return name.is_empty().then_some(("", after));
    };
    secret::is_name(name).then_some((name, after))
}

/// Whole or not at all; not when it is there already.
fn write(to: &Path, text: &str, secret: bool) -> Result<()> {
    let doing = || format!("write {}", to.display());
    // A link stays one.
    let to = to.canonicalize().unwrap_or_else(|_| to.to_owned());
    if fs::read(&to).is_ok_and(|now| now == text.as_bytes()) {
        return Ok(());
    }
    let folder = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).doing(doing)?;
    let usual = if secret { 0o600 } else { 0o644 };
    let mode = fs::metadata(&to).map_or(usual, |data| data.permissions().mode() & 0o777);
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = folder.join(format!(".{name}.agentbox-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let made = File::options().write(true).create_new(true).mode(0o600).open(&new);
    let done = made.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, &to)
    });
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done.doing(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    /// Renders a template to `out` in a folder of its own.
    fn done(dir: &Path, template: &str, flags: &[&str]) -> Result<String> {
        let source = dir.join("template");
        fs::write(&source, template).unwrap();
        let (out, state) = (dir.join("out"), dir.join("state"));
        let mut args = words(&[source.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        args.extend(words(&["--state-dir", state.to_str().unwrap(), "--config"]));
        args.push(dir.join(FILE_NAME).into());
        args.extend(words(flags));
        let wanted = wanted(&args).unwrap();
        let values = Values { box_name: Some("foo".into()), ..Values::default() };
        let (text, secret) = rendered(&wanted, &values)?;
        write(wanted.to.as_deref().unwrap(), &text, secret)?;
        Ok(fs::read_to_string(out).unwrap())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn yaml_13_44_and_45_placeholders_need_env_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let text = "{{AGENTBOX_BOX_NAME}} {{HOME}} {{ AGENTBOX_BOX_HOST }}";
        assert_eq!(done(dir.path(), text, &["--env"]).unwrap(), "foo {{HOME}} foo.localhost");
        assert_eq!(done(dir.path(), text, &[]).unwrap(), text);
        assert_eq!(mode(&dir.path().join("out")), 0o644);
        assert!(!dir.path().join("state").exists(), "no secret, no state");
    }

    #[test]
    fn yaml_13_46_dollars_are_plain_in_texts_and_groups_in_patterns() {
        let dir = tempfile::tempdir().unwrap();
        let shown = done(dir.path(), "price", &["--rule", "price=>$1.00"]).unwrap();
        assert_eq!(shown, "$1.00");
        let swapped = done(dir.path(), "a1 b2", &[r"--rule-regex=([a-z])(\d)=>$2$1"]).unwrap();
        assert_eq!(swapped, "1a 2b");
        // In the order they are typed.
        let both = ["--rule-regex", "a+=>b", "--rule", "b=>c", "--rule-regex", "c=>d"];
        assert_eq!(done(dir.path(), "aaa", &both).unwrap(), "d");
    }

    #[test]
    fn yaml_13_47_a_named_secret_is_made_once_and_one_without_a_name_every_time() {
        let dir = tempfile::tempdir().unwrap();
        let rule = ["--rule", "KEY=>{{AGENTBOX_AUTO_SECRET:k}}"];
        let first = done(dir.path(), "KEY {{ AGENTBOX_AUTO_SECRET:k }}", &rule).unwrap();
        let (one, same) = first.split_once(' ').unwrap();
        assert_eq!((one.len(), one), (43, same));
        assert_eq!(mode(&dir.path().join("out")), 0o600);
        let secrets = dir.path().join("state/secrets");
        assert_eq!((mode(&secrets), mode(&secrets.join("k"))), (0o700, 0o600));
        assert_eq!(fs::read_to_string(secrets.join("k")).unwrap(), format!("{one}\n"));
        assert_eq!(fs::read_dir(&secrets).unwrap().count(), 1, "nothing else is left there");
        assert_eq!(done(dir.path(), "{{AGENTBOX_AUTO_SECRET:k}}", &[]).unwrap(), one);
        let twice = "{{AGENTBOX_AUTO_SECRET}} {{AGENTBOX_AUTO_SECRET}}";
        let (a, b) = (done(dir.path(), twice, &[]).unwrap(), done(dir.path(), twice, &[]).unwrap());
        assert!(a != b && a[..43] != a[44..], "{a} {b}");
        for odd in [
            "{{AGENTBOX_AUTO_SECRETS}}",
            "{{AGENTBOX_AUTO_SECRET:../x}}",
            "{{AGENTBOX_AUTO_SECRET:}}",
        ] {
            assert_eq!(done(dir.path(), odd, &[]).unwrap(), odd);
        }
    }

    #[test]
    fn yaml_13_48_unknown_sets_and_two_destinations_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE_NAME), "replacements:\n  host: [{from: a, to: b}]\n")
            .unwrap();
        assert_eq!(done(dir.path(), "a", &["--rules", "host"]).unwrap(), "b");
        let error = done(dir.path(), "a", &["--rules", "host,ghost"]).unwrap_err();
        assert!(error.to_string().contains("'ghost'; there are: host"), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert_eq!(run(&words(&["x", "--out", "y", "--in-place"])).unwrap(), INVALID);
        for bad in [
            &["--rule", "=>x", "f"][..],
            &["--rule", "x", "f"],
            &["--what", "f"],
            &[],
            &["f", "--out"],
        ] {
            assert!(wanted(&words(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_there_keeps_its_mode_and_its_time_when_nothing_changes() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        done(dir.path(), "one", &[]).unwrap();
        fs::set_permissions(&out, Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(&out).unwrap().modified().unwrap();
        done(dir.path(), "one", &[]).unwrap();
        assert_eq!(fs::metadata(&out).unwrap().modified().unwrap(), before);
        done(dir.path(), "two", &[]).unwrap();
        assert_eq!(mode(&out), 0o640);
        fs::write(dir.path().join("template"), b"\xff").unwrap();
        let wanted = Wanted { source: dir.path().join("template"), ..Wanted::default() };
        let error = rendered(&wanted, &Values::default()).unwrap_err();
        assert!(error.to_string().contains("no UTF-8 text"), "{error}");
    }
}
