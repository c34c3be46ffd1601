use super::*;
use crate::{ApprovalMode, Settings};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

const NOTION: &str = "integrations.notion.enabled";

fn world(text: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.yaml");
    std::fs::write(&file, text).unwrap();
    (home, file)
}

fn after_set(text: &str, key: &str, value: Scalar) -> Result<String, Error> {
    let (_home, file) = world(text);
    set(&file, key, value)?;
    Ok(std::fs::read_to_string(file).unwrap())
}

fn after_unset(text: &str, key: &str) -> String {
    let (_home, file) = world(text);
    assert!(unset(&file, key).unwrap());
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn yaml_13_55_what_nobody_knows_stays_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let text = "schema: 1\nbox:\n  hetznerLocation: nbg1 # mine\ncloud: {region: x}\n";
    std::fs::write(&file, text).unwrap();
    set(&file, "box.memory", Scalar::Text("4g".into())).unwrap();
    let now = std::fs::read_to_string(&file).unwrap();
    for line in text.lines() {
        assert!(now.contains(line), "{now}");
    }
    assert!(now.contains("memory: 4g"), "{now}");
    assert!(unset(&file, "box.memory").unwrap());
    assert_eq!(layers::keys_of(&std::fs::read_to_string(&file).unwrap()), layers::keys_of(text));
    // A misspelt one is a mistake as before.
    std::fs::write(&file, "box: {memroy: 4g}\n").unwrap();
    assert!(set(&file, "box.vnc", Scalar::Bool(false)).is_err());
}

#[test]
fn file_and_folders_are_made_for_their_owner() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("projects/0123-shop");
    let file = dir.join("config.yaml");
    set(&file, NOTION, Scalar::Bool(true)).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&file)), (0o700, 0o600));
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "integrations:\n  notion:\n    enabled: true\n"
    );
    let settings = Settings::load_for(home.path(), Some(&dir)).unwrap();
    assert_eq!(settings.integrations["notion"].enabled, Some(true));
    let mut all: Vec<_> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    all.sort();
    assert_eq!(all, ["config.yaml", "config.yaml.lock"]);
    assert_eq!(mode(&dir.join("config.yaml.lock")), 0o600);
    let other = home.path().join("projects/4567-other/config.yaml");
    assert!(!unset(&other, NOTION).unwrap() && !other.parent().unwrap().exists());
}

#[test]
fn one_value_changes_and_nothing_else() {
    let text = "# mine\n\nintegrations:\n    # shared\n    notion:   {enabled: false} # off\n    linear:\n        enabled: true\n\nbox: { image: a }   # b\n";
    let expected = text.replace("enabled: false", "enabled: true");
    assert_eq!(after_set(text, NOTION, Scalar::Bool(true)).unwrap(), expected);
    assert_eq!(
        after_set("# only a comment", "gh.checkout", Scalar::Bool(true)).unwrap(),
        "# only a comment\ngh:\n  checkout: true\n"
    );
    assert_eq!(
        after_set("gh: # why\nbox:\n  image: a\n", "gh.checkout", Scalar::Bool(true)).unwrap(),
        "gh: # why\n  checkout: true\nbox:\n  image: a\n"
    );
}

#[test]
fn a_removed_key_is_gone_and_its_neighbours_stay() {
    let text = "# mine\nintegrations:\n  notion:\n    enabled: false # off\n    baseUrl: https://n # here\n  # linear\n  linear:\n    enabled: true\n";
    assert_eq!(after_unset(text, NOTION), text.replace("    enabled: false # off\n", ""));
    let alone = after_unset("# a\ngh:\n  # b\n  checkout: true\n# c\n", "gh.checkout");
    assert_eq!(Settings::default(), layers::parse(&alone).unwrap().0);
    assert_eq!(comments(&alone), ["# a", "# b", "# c"]);
    let (_home, file) = world(text);
    assert!(!unset(&file, "gh.checkout").unwrap());
    assert!(!unset(&file.with_file_name("other.yaml"), "gh.checkout").unwrap());
}

#[test]
fn what_two_keys_share_is_left_to_the_person() {
    let text = "integrations:\n  notion: &both\n    enabled: false\n  linear: *both\n";
    for key in [NOTION, "integrations.linear.enabled"] {
        let (_home, file) = world(text);
        let why = set(&file, key, Scalar::Bool(true)).unwrap_err();
        assert!(
            why.to_string().ends_with(&format!("edit it by hand: {}", file.display())),
            "{why}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_bad_key_a_bad_value_and_a_bad_file_change_nothing() {
    let good = "gh: {checkout: true}\n";
    for (text, key, value, said) in [
        (good, "gh.chekout", Scalar::Bool(true), "chekout"),
        (good, "gh.checkout", Scalar::Text("maybe".into()), "maybe"),
        (good, "integrations.notion.baseUrl", Scalar::Text("http://x".into()), "https://"),
        (good, "box.cpMaxBytes", Scalar::Number(0), "cpMaxBytes"),
        (good, "gh", Scalar::Bool(true), "gh"),
        (good, "gh.checkout.deeper", Scalar::Bool(true), "checkout"),
        (good, "gh..checkout", Scalar::Bool(true), "not the name of a setting"),
        (good, "gh.check out", Scalar::Bool(true), "not the name of a setting"),
        (good, "", Scalar::Bool(true), "not the name of a setting"),
        ("gh: {chekout: true}\n", "gh.checkout", Scalar::Bool(true), "chekout"),
        ("gh: [\n", "gh.checkout", Scalar::Bool(true), "line"),
        ("gh: 5\n", "gh.checkout", Scalar::Bool(true), "gh"),
    ] {
        let (_home, file) = world(text);
        let why = set(&file, key, value).unwrap_err();
        assert!(
            matches!(why, Error::Invalid { .. }) && why.to_string().contains(said),
            "{key}: {why}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let (home, file) = world("# kept elsewhere\n");
    let link = home.path().join("link.yaml");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    set(&link, "gh.checkout", Scalar::Bool(true)).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().contains("checkout: true"));
}

#[test]
fn changes_at_once_are_all_kept() {
    let (home, file) = world("# shared\n");
    std::thread::scope(|all| {
        for n in 0..16 {
            let file = &file;
            all.spawn(move || set(file, &format!("integrations.s{n}.enabled"), Scalar::Bool(true)));
        }
    });
    assert_eq!(Settings::load(home.path()).unwrap().integrations.len(), 16);
}

/// A key and a value for it.
fn change() -> impl Strategy<Value = (String, Scalar)> {
    let service = || prop_oneof!["notion", "linear", "[a-z][a-z-]{0,8}"];
    let text = |s: &str| Scalar::Text(s.to_owned());
    prop_oneof![
        (service(), any::<bool>())
            .prop_map(|(s, on)| (format!("integrations.{s}.enabled"), Scalar::Bool(on))),
        (service(), "https://[a-z]{1,9}\\.example(/[a-z]{1,3})?")
            .prop_map(move |(s, url)| (format!("integrations.{s}.baseUrl"), text(&url))),
        (1..=u64::MAX).prop_map(|n| ("box.cpMaxBytes".into(), Scalar::Number(n))),
        odd_text().prop_map(move |odd| ("box.image".into(), text(&odd))),
        "ask|safe".prop_map(move |mode| ("approvals.mode".into(), text(&mode))),
    ]
}

/// What YAML would take for something else if it were not quoted.
fn odd_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,3}[ :#\"'{}\\[\\],&*!|>%@`~0-9-]{0,6}[a-z]{0,3}",
        "true|null|~|1e3|0x1f|yes|",
        "\\PC{1,12}",
    ]
}

fn holds(settings: &Settings, key: &str, value: &Scalar) -> bool {
    let words: Vec<&str> = key.split('.').collect();
    match (words.as_slice(), value) {
        (["integrations", service, "enabled"], Scalar::Bool(on)) => {
            settings.integrations[*service].enabled == Some(*on)
        }
        (["integrations", service, "baseUrl"], Scalar::Text(url)) => {
            settings.integrations[*service].base_url.as_ref() == Some(url)
        }
        (["box", "cpMaxBytes"], Scalar::Number(n)) => settings.boxes.cp_max_bytes == *n,
        (["box", "image"], Scalar::Text(image)) => settings.boxes.image.as_ref() == Some(image),
        (["approvals", "mode"], Scalar::Text(mode)) => {
            (settings.approvals.mode == ApprovalMode::Safe) == (mode == "safe")
        }
        _ => panic!("{key} is not looked at"),
    }
}

/// A file as people write them: mostly block style, comments and blanks everywhere. `@` stands for
/// one step of the indentation they chose.
fn file() -> impl Strategy<Value = String> {
    (
        prop_oneof![Just("  "), Just("    "), Just(" ")],
        section(&[
            "notion: {enabled: false}",
            "linear:\n@@# inner\n@@enabled: true\n@@autoApproveWrites: false",
            "trello:",
        ]),
        section(&["image: a", "cpMaxBytes: 5", "extraCas:\n@- /etc\n@# usr\n@- /usr"]),
        section(&["mode: 'safe'", "quiet: \"22:00-07:00\"", "promptCommand: [dmenu, -i]"]),
        prop_oneof![Just(""), Just("# head\n"), Just("---\n"), Just("# head\n\n---\n# two\n")],
        prop_oneof![Just(""), Just("# foot\n"), Just("\n\n# foot")],
        Just(vec![0usize, 1, 2]).prop_shuffle(),
        any::<bool>(),
    )
        .prop_map(|(indent, integrations, boxes, approvals, head, foot, order, cut)| {
            let sections = [
                format!("integrations: # services\n{integrations}"),
                format!("box:\n{boxes}"),
                format!("\"approvals\":\n{approvals}"),
            ];
            let body: String = order.iter().map(|n| sections[*n].as_str()).collect();
            let text = format!("{head}{body}{foot}").replace('@', indent);
            if cut { text.trim_end().to_owned() } else { text }
        })
}

/// Some of the lines, with something before and behind them.
fn section(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    let line = |line: &'static str| {
        let before = prop_oneof![
            Just(""),
            Just("\n"),
            Just("@# a comment: here\n"),
            Just("@# one\n\n@# two\n")
        ];
        let behind = prop_oneof![Just(""), Just(" # said why"), Just("   # {odd: [")];
        (any::<bool>(), before, behind).prop_map(move |(with, before, behind)| {
            if with { format!("{before}@{line}{behind}\n") } else { before.to_owned() }
        })
    };
    lines.iter().map(|l| line(l)).collect::<Vec<_>>().prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn set_then_load_gives_the_value_and_comments_survive(
        text in file(),
        (key, value) in change(),
    ) {
        let (home, file) = world(&text);
        set(&file, &key, value.clone()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let settings = Settings::load(home.path()).unwrap();
        let now = std::fs::read_to_string(&file).unwrap();
        prop_assert!(holds(&settings, &key, &value), "{key} in\n{now}");
        prop_assert_eq!(comments(&now), comments(&text));
        for line in text.lines().filter(|line| line.trim_start().starts_with('#')) {
            prop_assert!(now.lines().any(|l| l == line), "lost {line:?} in\n{now}");
        }
    }

    #[test]
    fn set_then_unset_says_what_was_said_before(text in file(), (key, value) in change()) {
        let (_, given, _) = layers::parse(&text).unwrap();
        let words: Vec<String> = key.split('.').map(str::to_owned).collect();
        if take(&mut given.clone(), &words) {
            return Ok(()); // it was there before: unset would not lead back
        }
        let (_home, file) = world(&text);
        set(&file, &key, value).unwrap();
        prop_assert!(unset(&file, &key).unwrap());
        let now = std::fs::read_to_string(&file).unwrap();
        prop_assert_eq!(layers::parse(&now).unwrap().1, given, "{}", now);
        prop_assert_eq!(comments(&now), comments(&text), "{}", now);
    }
}

#[test]
fn a_list_is_set_like_any_other_value() {
    let list = |all: &[&str]| Scalar::List(all.iter().map(|w| (*w).to_owned()).collect());
    let key = "approvals.promptCommand";
    for text in
        ["", "# a\n", "approvals:\n  mode: ask # b\n", "approvals: {promptCommand: [x, y]}\n"]
    {
        let after = after_set(text, key, list(&["dmenu", "-p", "a: b"])).unwrap();
        let (settings, ..) = layers::parse(&after).unwrap();
        let command = settings.approvals.prompt_command.unwrap();
        assert_eq!(command, ["dmenu", "-p", "a: b"], "{after}");
    }
    assert!(after_set("", key, list(&[])).is_err(), "a command has a program");
}

#[test]
fn a_whole_file_is_written_when_it_is_in_order() {
    let (_home, file) = world("gh: {checkout: true}\n");
    assert!(write(&file, "gh: {chekout: true}\n", |_| true).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "gh: {checkout: true}\n");
    write(&file, "# b\n", |_| true).unwrap();
    begin(&file, "c").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# b\n");
    let new = file.with_file_name("new.yaml");
    begin(&new, "project: /srv/shop").unwrap();
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "# project: /srv/shop\n");
}

#[test]
fn a_folders_name_writes_nothing_but_a_comment() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a\u{2028}gh: {checkout: true}", "a\u{2029}b", "a\nb: 1", "a\u{85}b", "a\rb"] {
        let file = dir.path().join("config.yaml");
        begin(&file, &format!("project: /src/{name}")).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "", "{name:?}");
        std::fs::remove_file(&file).unwrap();
        begin(&file, "project: /src/shop").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# project: /src/shop\n");
        std::fs::remove_file(&file).unwrap();
    }
}

/// Not a test of its own: what [`several_processes_lose_nothing`] starts twice.
#[test]
fn another_process() {
    let Some(file) = std::env::var_os("AGENTBOX_TEST_FILE") else { return };
    let name = std::env::var("AGENTBOX_TEST_NAME").unwrap();
    for n in 0..50 {
        let key = format!("integrations.{name}{n}.enabled");
        set(Path::new(&file), &key, Scalar::Bool(true)).unwrap();
    }
}

#[test]
fn several_processes_lose_nothing() {
    let (_home, file) = world("# mine\n");
    let names = ["a", "b"];
    let start = |name: &&str| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "edit::tests::another_process"]);
        command.env("AGENTBOX_TEST_FILE", &file).env("AGENTBOX_TEST_NAME", name);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = names.iter().map(start).collect();
    assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
    let text = std::fs::read_to_string(&file).unwrap();
    let (settings, ..) = layers::parse(&text).unwrap();
    assert!(text.starts_with("# mine\n"));
    assert_eq!(settings.integrations.len(), 100, "{text}");
}

#[test]
fn a_whole_file_is_written_only_over_what_was_read() {
    let before = "gh: {checkout: true} # mine\nbox: {memory: 4g, vnc: false}\n";
    let (_home, file) = world(before);
    let text = "gh: {checkout: false}\nbox: {memory: 4g}\ncloud: {region: x}\n";
    let opened = |then: Option<&str>| then == Some(before);
    let is = |key: &str, value: Option<&str>| Change {
        key: key.into(),
        value: value.map(str::to_owned),
    };
    set(&file, "gh.checkout", Scalar::Bool(false)).unwrap();
    let why = write(&file, text, opened).unwrap_err();
    assert!(matches!(&why, Error::Changed(path) if *path == file), "{why}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("# mine"));
    std::fs::write(&file, before).unwrap();
    let bad = write(&file, "gh: {chekout: true}\n", opened).unwrap_err();
    assert!(matches!(bad, Error::Invalid { .. }), "{bad}");
    let changes = write(&file, text, opened).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert_eq!(
        changes,
        [is("gh.checkout", Some("false")), is("cloud.region", Some("x")), is("box.vnc", None)]
    );
    // One that is broken can be mended, and one that is not there made.
    std::fs::write(&file, "gh: [\n").unwrap();
    assert_eq!(write(&file, text, |then| then == Some("gh: [\n")).unwrap().len(), 3);
    let new = file.with_file_name("new.yaml");
    assert!(write(&new, "# none\n", |then| then.is_none()).unwrap().is_empty());
    assert!(matches!(write(&new, text, |then| then.is_none()), Err(Error::Changed(_))));
}

#[test]
fn who_holds_a_file_is_waited_for() {
    let (_home, file) = world("");
    let lock = File::create(file.with_file_name("config.yaml.lock")).unwrap();
    lock.lock().unwrap();
    let changing = {
        let file = file.clone();
        std::thread::spawn(move || set(&file, NOTION, Scalar::Bool(true)))
    };
    std::thread::sleep(Duration::from_millis(50));
    assert!(!changing.is_finished());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "");
    drop(lock);
    changing.join().unwrap().unwrap();
}
