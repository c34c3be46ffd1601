//! A box knows which box it is, in every way a program is started in it, and files that are made for it
//! say the same wherever they are made.

use crate::carry::{user_home, write};
use crate::daemons::Ssh;
use crate::image::full;
use crate::world::{SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use std::path::PathBuf;

const TEMPLATE: &str = "{{AGENTBOX_BOX_NAME}} {{AGENTBOX_BOX_ID}} {{AGENTBOX_BOX_KIND}} \
    {{AGENTBOX_BOX_HOST}}\n{{AGENTBOX_HOST_WORKSPACE}}\n{{AGENTBOX_PROJECT_ROOT}}\n{{HOME}}\n";

/// The project again, in a folder of a name that shells and servers trip over.
fn odd(world: &World) -> PathBuf {
    let odd = world.dir().join("it's \"odd\" & $HOME # \\ é");
    let project = world.project().display().to_string();
    world.git(world.dir(), &["clone", "-q", &project, odd.to_str().unwrap()]);
    odd
}

#[test]
fn a_box_knows_who_it_is_and_a_template_is_the_same_from_both_sides() {
    let world = full("");
    let odd = odd(&world);
    write(user_home(&world).join("template"), TEMPLATE, 0o644);
    write(
        odd.join("agentbox.yaml"),
        "carry:
  - {src: ~/template, dest: ~/carried, replaceEnvs: true}
  - ~/template
tasks:
  render: {command: 'agentbox-ctl render ~/template --env --out ~/by-task'}
",
        0o644,
    );
    let mut create = world.agentbox_command(&["create", "-n", "whoami", "--carry-yes", "--json"]);
    let made = create.current_dir(&odd).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let (id, path) = (made["box"]["id"].as_str().unwrap(), odd.to_str().unwrap());
    let wanted = format!("whoami {id} docker whoami.localhost\n{path}\n{path}\n{{{{HOME}}}}");
    let show = |script: &str| world.box_ok("whoami", script);

    // By carry on the host, by a command, by one that has no environment, by a task.
    assert_eq!(show("cat ~/carried"), wanted);
    let render = "agentbox-ctl render /home/vscode/template --env";
    assert_eq!(show(&format!("{render} | cmp - ~/carried && {render}")), wanted);
    assert_eq!(show(&format!("env -i /usr/local/bin/{render}")), wanted);
    world.ok(&["wait", "whoami", "--timeout", "120s"]);
    assert_eq!(show("cat ~/by-task"), wanted);

    // Commands have it from the container, login shells from the file, ssh sessions from the server.
    let names = "AGENTBOX AGENTBOX_BOX_NAME AGENTBOX_BOX_KIND AGENTBOX_HOST_WORKSPACE \
                 AGENTBOX_PROJECT_ROOT AGENTBOX_PROJECT_INDEX";
    let told = format!("1\nwhoami\ndocker\n{path}\n{path}\n1");
    assert_eq!(show(&format!("printenv {names}")), told);
    assert_eq!(show(&format!("env -i bash -lc 'printenv {names}'")), told);
    let ssh = Ssh::to(&world, &made["box"]);
    let key = ssh.folder.join("id_ed25519");
    let session = eventually_or(SOON, "a session", || {
        let output = ssh.run("vscode", &key, &[&format!("printenv {names}")]);
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    });
    assert_eq!(session.trim_end(), told);

    // Everybody's to read, root's to write, and nothing in it that anybody may not know.
    let file = "/etc/agentbox/box.env";
    assert_eq!(
        show(&format!("stat -c '%a %U' {file}; ls /etc/agentbox | grep box")),
        "644 root\nbox.env"
    );
    assert_eq!(show(&format!("grep -cF \"$(cat /run/agentbox/token)\" {file} || true")), "0");
    assert_eq!(show(&format!("grep -vc '^AGENTBOX[A-Z_]*=' {file} || true")), "0");

    // Each start says it anew, and a box that cannot be told works all the same.
    show(&format!("sudo sh -c \"echo AGENTBOX_BOX_NAME=\\'other\\' > {file}\""));
    world.ok(&["stop", "whoami"]);
    world.ok(&["start", "whoami"]);
    assert_eq!(
        show("env -i bash -lc 'printenv AGENTBOX_BOX_NAME AGENTBOX_PROJECT_ROOT'"),
        format!("whoami\n{path}")
    );
    show(&format!("sudo rm {file} && sudo mkdir {file}"));
    world.ok(&["stop", "whoami"]);
    world.ok(&["start", "whoami"]);
    assert_eq!(show(render), wanted);
}
