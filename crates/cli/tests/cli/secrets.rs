//! `agentbox secrets`: whose a credential is, where it may go, and that its value comes by no way that
//! others can see.

use crate::support::{FakeHost, a_box};
use protocol::control::{ControlError, ErrorCode, Level, Request};
use protocol::integrations::{SecretScope, SecretView, Tried};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const VALUE: &str = "sesame-open-0123";

fn view(id: &str, scope: SecretScope, stored: bool) -> SecretView {
    SecretView {
        id: id.parse().unwrap(),
        stored,
        used_by: vec![],
        about: String::new(),
        kept_in: "keychain".into(),
        set_at: None,
        last_used: None,
        scope,
        hosts: vec![],
    }
}

/// One that has `ex.token` of everybody, and takes the rest.
fn host() -> FakeHost {
    FakeHost::new(|request, call| match request {
        Request::Secrets => call.result(&vec![
            view("ex.token", SecretScope::Everybody, true),
            view("trello.key", SecretScope::Everybody, false),
        ]),
        Request::SetSecret { value, .. } if value.0.len() < 8 => {
            call.result(&Some("the value is shorter than 8 bytes"));
        }
        Request::SetSecret { .. } => call.result(&None::<String>),
        Request::RemoveSecret { id, .. } => call.result(&(id.as_str() == "ex.token")),
        Request::TestSecret { id, .. } if id.as_str() == "ex.token" => call.result(&Tried {
            level: Level::Ok,
            detail: "stored in the keychain".into(),
            hint: None,
        }),
        Request::TestSecret { .. } => call.result(&Tried {
            level: Level::Fail,
            detail: "not stored".into(),
            hint: Some("agentbox secrets set".into()),
        }),
        Request::FindBox { target } => match target.query.as_deref() {
            Some("fix-login") => call.result(&a_box("/p".as_ref())),
            _ => call.error(&ControlError::new(ErrorCode::Usage, "there is no such box")),
        },
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_value_comes_by_standard_input_and_never_by_an_argument() {
    let host = host();
    let input = format!("{VALUE}\n");
    let run = |args: &[&str]| host.home.run_with_input(args, input.as_bytes());
    let told = run(&["secrets", "set", "my.own-token"]).exits(0);
    assert!(!told.stdout.contains(VALUE) && !told.stderr.contains(VALUE), "{told:#?}");
    let _ = told.prints("stored  my.own-token\n").says("it is for policies that name it");
    let asked = host.asked_once("setSecret");
    assert_eq!(asked["value"], VALUE);
    assert_eq!((&asked["scope"], &asked["hosts"]), (&json!({"of": "everybody"}), &json!(null)));

    let said = run(&["secrets", "set", "my.own-token", VALUE]).exits(2);
    assert!(said.stderr.contains("unexpected argument"), "{said:#?}");
    for flag in ["--value", "--from-env", "--token"] {
        let _ = run(&["secrets", "set", "my.own-token", flag, VALUE]).exits(2);
    }
    // There is no way to have one back.
    let _ = run(&["secrets", "get", "ex.token"]).exits(2);
    let _ = host.asked_once("setSecret");
}

#[test]
fn egress_12_33_what_is_no_name_is_refused_before_a_value_is_read() {
    let host = host();
    for bad in ["../x", ".", "..", "a/b", "a b", "", "Ex.Token", "@box.x"] {
        let _ = host.home.run(&["secrets", "set", bad]).exits(2);
    }
    assert!(host.asked().is_empty(), "{:?}", host.asked());
}

#[test]
fn egress_12_32_what_is_no_line_is_not_stored() {
    let host = host();
    for bad in [&b""[..], b"\n", b"\r\n", b"a\n\n", b"a\nb", b"a\0b"] {
        let said = host.home.run_with_input(&["secrets", "set", "my.token"], bad).exits(2);
        assert!(said.stderr.contains("nothing was stored"), "{said:#?}");
    }
    let _ = host.home.run_with_input(&["secrets", "set", "my.token"], b"a\xff").exits(1);
    host.never_asked("setSecret");
    let set = ["secrets", "set", "my.token"];
    let _ = host.home.run_with_input(&set, b"short\r\n").exits(0).says("shorter than 8 bytes");
    assert_eq!(host.asked_once("setSecret")["value"], "short");
}

#[test]
fn hosts_and_whose_it_is_go_with_the_request() {
    let project = |host: &FakeHost| host.home.project().to_str().unwrap().to_owned();
    let cases: [(&[&str], &str); 4] = [
        (&["--project"], "project"),
        (&["--project", "."], "project"),
        (&["--box", "fix-login"], "box"),
        // One that is gone is known by its id.
        (&["--box", "b00000099"], "gone"),
    ];
    for (flags, whose) in cases {
        for action in ["set", "rm", "test"] {
            let host = host();
            let scope = match whose {
                "project" => json!({"of": "project", "root": project(&host)}),
                "box" => json!({"of": "box", "id": "b0000000a"}),
                _ => json!({"of": "box", "id": "b00000099"}),
            };
            let mut args = vec!["secrets", action, "ex.token"];
            args.extend(flags);
            args.extend((action == "rm").then_some("-y"));
            let _ = host.home.run_with_input(&args, VALUE.as_bytes()).somehow();
            let method = match action {
                "set" => "setSecret",
                "rm" => "removeSecret",
                _ => "testSecret",
            };
            assert_eq!(host.asked_once(method)["scope"], scope, "{args:?}");
        }
    }
    let host = host();
    let set = |args: &[&str]| {
        let args: Vec<&str> = ["secrets", "set", "my.token"].iter().chain(args).copied().collect();
        host.home.run_with_input(&args, VALUE.as_bytes())
    };
    let _ = set(&["--host", "a.example", "--host", "b.example", "--json"]).exits(0);
    assert_eq!(host.asked_once("setSecret")["hosts"], json!(["a.example", "b.example"]));
    let told = set(&["--any-host", "--json"]).exits(0).json();
    assert_eq!(host.asked().last().unwrap()["params"]["hosts"], json!([]));
    assert_eq!(told["secret"]["stored"], true);
    let _ = set(&["--any-host", "--host", "a.example"]).exits(2);
    let _ = set(&["--project", "--box", "fix-login"]).exits(2);
    let _ = set(&["--box", "nobody"]).exits(2).says("no such box");
}

#[test]
fn only_what_is_stored_is_rotated_and_its_hosts_stay() {
    let host = host();
    let run = |args: &[&str]| host.home.run_with_input(args, VALUE.as_bytes());
    let _ = run(&["secrets", "rotate", "trello.key"]).exits(2).says("trello.key is not stored");
    let _ = run(&["secrets", "rotate", "ex.token", "--project"]).exits(2).says("is not stored");
    host.never_asked("setSecret");
    let _ = run(&["secrets", "rotate", "ex.token"]).exits(0).prints("replaced  ex.token\n");
    let asked = host.asked_once("setSecret");
    assert_eq!((&asked["value"], &asked["hosts"]), (&json!(VALUE), &json!(null)));
    // Those it is bound to are said when it is set.
    let _ = run(&["secrets", "rotate", "ex.token", "--host", "a.example"]).exits(2);
}

#[test]
fn a_test_ends_with_four_when_there_is_nothing_to_test() {
    let host = host();
    let told = host.run(&["secrets", "test", "ex.token"]).exits(0);
    assert!(told.stdout.contains("stored in the keychain"), "{told:#?}");
    let told = host.run(&["secrets", "test", "trello.key"]).exits(4);
    assert!(told.stdout.contains("not stored"), "{told:#?}");
    let told = host.run(&["secrets", "test", "nobody.knows", "--json"]).exits(4);
    assert_eq!(told.json()["result"]["level"], "fail");
}

#[test]
fn what_is_removed_is_told() {
    let host = host();
    let told = host.run(&["secrets", "rm", "ex.token", "-y", "--json"]).exits(0).json();
    assert_eq!(told["secret"]["stored"], false);
    let _ = host.run(&["secrets", "rm", "other.token", "-y"]).exits(2).says("is not stored");
    let _ = host.run(&["secrets", "rm", "ex.token"]).exits(2).says("nobody is there");
}

fn fill(folder: &Path) {
    let write = |name: &str, text: &[u8], mode: u32| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("new.token", format!("{VALUE}\n").as_bytes(), 0o600);
    write("ex.token", VALUE.as_bytes(), 0o600);
    write("two.lines", format!("{VALUE}\n{VALUE}\n").as_bytes(), 0o600);
    write("README.md", VALUE.as_bytes(), 0o600);
    write(".hidden", VALUE.as_bytes(), 0o600);
    symlink(folder.join("new.token"), folder.join("a.link")).unwrap();
    nix::unistd::mkfifo(&folder.join("a.pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::create_dir(folder.join("a.folder")).unwrap();
}

#[test]
fn egress_12_34_a_folder_is_imported_without_links_pipes_and_strangers() {
    let host = host();
    let folder = host.home.tmp().join("from");
    std::fs::create_dir(&folder).unwrap();
    fill(&folder);
    let from = folder.to_str().unwrap();
    let told = host.run(&["secrets", "import", "--from-dir", from, "--json"]).exits(1);
    assert!(!told.stdout.contains("sesame") && !told.stderr.contains("sesame"), "{told:#?}");
    let all = told.json();
    let became = |name: &str| {
        let files = all["files"].as_array().unwrap();
        files.iter().find(|file| file["name"] == name).unwrap()["became"].clone()
    };
    for (name, what) in [
        ("new.token", "stored"),
        ("ex.token", "leftOut"),
        ("README.md", "leftOut"),
        (".hidden", "leftOut"),
        ("two.lines", "failed"),
        ("a.link", "failed"),
        ("a.pipe", "failed"),
        ("a.folder", "failed"),
    ] {
        assert_eq!(became(name), what, "{name}");
    }
    let asked = host.asked_once("setSecret");
    assert_eq!((&asked["id"], &asked["value"]), (&json!("new.token"), &json!(VALUE)));
    assert!(folder.join("new.token").exists());
}

#[test]
fn an_import_says_what_became_of_each_file() {
    let host = host();
    let folder = host.home.tmp().join("from");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("ex.token"), VALUE).unwrap();
    std::fs::set_permissions(folder.join("ex.token"), std::fs::Permissions::from_mode(0o644))
        .unwrap();
    let from = folder.to_str().unwrap();
    let import = ["secrets", "import", "--from-dir", from, "--replace", "--box", "fix-login"];
    let told = host.run(&import).exits(0).says("can read files in").says("remove it there");
    assert_eq!(told.stdout, "FILE      BECAME  WHY\nex.token  stored\n");
    let scope = json!({"of": "box", "id": "b0000000a"});
    assert_eq!(host.asked_once("setSecret")["scope"], scope);

    let told = host.run(&["secrets", "import", "--from-dir", from, "--replace"]).exits(0);
    assert_eq!(told.stdout, "FILE      BECAME    WHY\nex.token  replaced\n");
    let _ = host.run(&["secrets", "import", "--from-dir", "/nonexistent/x"]).exits(2);
    let _ = host.run(&["secrets", "import"]).exits(2);
}
