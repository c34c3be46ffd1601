//! The host killed at every step of a write: nothing is lost, nothing is done twice, nothing is left
//! half done, and whoever waits in a box is told.

use crate::channels::over_both_channels;
use crate::world::{SOON, World, docker, remove_image, settings};
use agentbox_e2e::session::Options;
use agentbox_e2e::wait::{eventually, eventually_or};
use bollard::query_parameters as query;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

const LINEAR: &str = "integrations: {linear: {enabled: true}}\n";
const COMMENT: &str = "linear issue comment add ENG-1 --body hi";

/// A step that a program on the host stays at for as long as it is held.
struct Hold(PathBuf);

impl Hold {
    fn new(world: &World) -> Self {
        let file = world.dir().join("hold");
        std::fs::write(&file, "").unwrap();
        Self(file)
    }

    fn release(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release();
    }
}

/// A `linear` that says what it is at, and stays at one step while that is held.
fn linear(world: &World, stop_at: &str) -> PathBuf {
    let log = world.dir().join("linear.log");
    world.host_program(
        "linear",
        &format!(
            "#!/bin/sh\n\
             step() {{ echo \"$1\" >> {log}; [ \"$1\" = {stop_at} ] || return 0; \
                       while [ -e {hold} ]; do sleep 0.05; done; }}\n\
             if [ \"$1\" = --version ]; then step probe; echo 'linear 2'; exit 0; fi\n\
             step begun\nstep ended\n",
            log = log.display(),
            hold = world.dir().join("hold").display(),
        ),
    );
    log
}

fn steps(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn has(log: &Path, step: &str) -> bool {
    steps(log).iter().any(|s| s == step)
}

fn world(channel: &str, stop_at: &str) -> (World, PathBuf) {
    let mut world = World::bare();
    world.configure(&settings(channel, LINEAR));
    let log = linear(&world, stop_at);
    world.start_serve();
    world.create("fix-login");
    (world, log)
}

/// In the background of the box, with its end kept there: the host's death ends the exec stream, not
/// the command.
fn begin(world: &World, command: &str) {
    let script = format!(
        "rm -f /tmp/code; nohup sh -c '{command} > /tmp/out 2>&1; echo $? > /tmp/code' > /dev/null 2>&1 &"
    );
    world.box_ok("fix-login", &script);
}

fn killed_and_back(world: &mut World) -> String {
    world.kill_host();
    back(world)
}

/// Another host takes the killed one's place; how the command in the box ended.
fn back(world: &mut World) -> String {
    world.start_serve();
    let code = eventually_or(SOON, "the command in the box ending", || {
        let output = world.in_box("fix-login", "cat /tmp/code");
        let code = String::from_utf8_lossy(&output.stdout).into_owned();
        if code.ends_with('\n') { Ok(code) } else { Err("no code") }
    });
    assert!(world.questions().is_empty());
    world.ok(&["audit", "verify"]);
    eventually_or(SOON, "the box reaching its host again", || {
        let output = world.in_box("fix-login", "agentbox-ctl event back");
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    });
    code.trim().to_owned()
}

#[track_caller]
fn works_again(world: &World, command: &str) {
    let (_, ended) = world.answered("fix-login", command, "approve");
    assert_eq!(ended.code, Some(0), "{}{}", ended.err, world.host_log());
    assert_eq!(world.audit_kinds("fix-login").last().map(String::as_str), Some("executed"));
    world.ok(&["audit", "verify"]);
}

/// How often the trail has this kind.
fn count(world: &World, kind: &str) -> usize {
    world.audit_kinds("fix-login").iter().filter(|k| *k == kind).count()
}

over_both_channels! {
    fn killed_while_a_program_is_looked_at(channel) {
        let (mut world, log) = world(channel, "probe");
        let hold = Hold::new(&world);
        begin(&world, COMMENT);
        eventually(SOON, "the probe", || has(&log, "probe").then_some(()));
        assert_eq!(killed_and_back(&mut world), "126");
        assert!(!has(&log, "begun"));
        assert_eq!(count(&world, "asked"), 0);
        hold.release();
        works_again(&world, COMMENT);
    }

    fn killed_while_the_question_is_open(channel) {
        let (mut world, log) = world(channel, "never");
        begin(&world, COMMENT);
        world.question_of("fix-login");
        assert_eq!(killed_and_back(&mut world), "126");
        assert!(!has(&log, "begun"));
        let trail = world.json(&["audit", "fix-login"]).to_string();
        assert!(trail.contains("the host stopped, denied"), "{trail}");
        works_again(&world, COMMENT);
    }

    fn killed_while_the_program_runs(channel) {
        let (mut world, log) = world(channel, "begun");
        let hold = Hold::new(&world);
        begin(&world, COMMENT);
        world.approve("fix-login", &[]);
        eventually(SOON, "the program", || has(&log, "begun").then_some(()));
        assert_eq!(killed_and_back(&mut world), "126");
        // The yes is on record. What was begun is not begun again by itself: only by the next call.
        assert_eq!((count(&world, "answered"), count(&world, "executed")), (1, 0));
        hold.release();
        works_again(&world, COMMENT);
        assert_eq!(steps(&log).iter().filter(|step| *step == "begun").count(), 2);
    }

    fn killed_right_after_the_answer_was_given_to_the_box(channel) {
        let (mut world, _) = world(channel, "never");
        let (_, ended) = world.answered("fix-login", COMMENT, "approve");
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        world.kill_host();
        world.start_serve();
        // What the box was told has happened is on record.
        let kinds = world.audit_kinds("fix-login");
        assert_eq!(kinds.last().map(String::as_str), Some("executed"), "{kinds:?}");
        world.ok(&["audit", "verify"]);
    }
}

// ---- a push that is being prepared

/// Commits are not followed: the next push is the first to ask for them.
fn without_watcher(world: &World) {
    world.box_ok("fix-login", "sudo pkill -STOP -f 'agentbox-ctl watc[h]'");
}

/// Files of pushes and clones that no host works on any more.
fn left_over(world: &World) -> Vec<PathBuf> {
    let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let repos = entries(world.home().join("repos")).flat_map(|repo| entries(repo.path()));
    let bundles = repos.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "bundle"));
    let scratch = entries(world.home().join("relay")).map(|e| e.path());
    let clones = scratch.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("clone-"));
    bundles.chain(clones).collect()
}

/// The host killed while it prepares a push: nobody was asked, and what it worked on is gone.
#[track_caller]
fn killed_before_it_asked(world: &mut World) {
    let begun = left_over(world);
    assert!(!begun.is_empty(), "no push is being prepared");
    assert_eq!(killed_and_back(world), "126");
    assert_eq!(count(world, "asked"), 0);
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
    // The new host may be taking commits in itself.
    assert!(begun.iter().all(|file| !file.exists()), "{:?}", left_over(world));
}

over_both_channels! {
    fn killed_while_the_box_bundles_its_commits(channel) {
        let mut world = World::over(channel, "");
        world.create("fix-login");
        without_watcher(&world);
        // Before the commit: a look at the new box that is late must not take it along unseen.
        world.box_ok(
            "fix-login",
            r#"sudo mv /usr/bin/git /usr/bin/git.real && printf '%s\n' '#!/bin/sh' \
               'case " $* " in *" bundle create "*) [ -e /tmp/hold ] && touch /tmp/held;' \
               'while [ -e /tmp/hold ]; do sleep 0.05; done ;; esac' \
               'exec /usr/bin/git.real "$@"' > /tmp/git && sudo install -m 755 /tmp/git /usr/bin/git &&
               touch /tmp/hold"#,
        );
        let oid = world.commit("fix-login", "One");
        begin(&world, "git push");
        eventually_or(SOON, "the bundle being made", || {
            let output = world.in_box("fix-login", "cat /tmp/held");
            if output.status.success() { Ok(()) } else { Err(world.host_log()) }
        });
        killed_before_it_asked(&mut world);
        world.box_ok("fix-login", "rm /tmp/hold");
        works_again(&world, "git push");
        assert_eq!(world.at_remote("agentbox/fix-login"), Some(oid));
    }

    fn killed_while_the_host_takes_commits_in(channel) {
        let mut world = World::bare();
        let (log, hold) = (world.dir().join("git.log"), Hold::new(&world));
        hold.release();
        world.host_program(
            "git",
            &format!(
                "#!/bin/sh\ncase \"$*\" in *.bundle*) [ -e {hold} ] && echo \"$*\" >> {log}\n\
                 while [ -e {hold} ]; do sleep 0.05; done ;; esac\nexec /usr/bin/git \"$@\"\n",
                hold = hold.0.display(),
                log = log.display(),
            ),
        );
        world.configure(&settings(channel, ""));
        world.start_serve();
        world.create("fix-login");
        without_watcher(&world);
        let oid = world.commit("fix-login", "One");
        let hold = Hold::new(&world);
        begin(&world, "git push");
        eventually_or(SOON, "the bundle being taken in", || {
            if steps(&log).is_empty() { Err(world.host_log()) } else { Ok(()) }
        });
        assert!(steps(&log)[0].contains("fetch"), "{:?}", steps(&log));
        killed_before_it_asked(&mut world);
        hold.release();
        works_again(&world, "git push");
        assert_eq!(world.at_remote("agentbox/fix-login"), Some(oid));
    }
}

// ---- a credential that is being read

/// Whoever owns the Secret Service.
fn keyring(world: &World) -> Pid {
    let bus = zbus::blocking::fdo::DBusProxy::new(&world.session().bus()).unwrap();
    let name = "org.freedesktop.secrets".try_into().unwrap();
    let pid = bus.get_connection_unix_process_id(name).unwrap();
    Pid::from_raw(i32::try_from(pid).unwrap())
}

/// Tells when the keyring is asked for something.
fn calls_to_keyring(world: &World) -> std::sync::mpsc::Receiver<String> {
    let bus = world.session().bus();
    let rule = "type='method_call'";
    bus.call_method(
        Some("org.freedesktop.DBus"),
        "/org/freedesktop/DBus",
        Some("org.freedesktop.DBus.Monitoring"),
        "BecomeMonitor",
        &(vec![rule], 0u32),
    )
    .unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for message in zbus::blocking::MessageIterator::from(bus).flatten() {
            let header = message.header();
            let interface = header.interface().map(ToString::to_string).unwrap_or_default();
            let asked = interface.starts_with("org.freedesktop.Secret.");
            let what = header.member().map(ToString::to_string).unwrap_or_default();
            if asked && tell.send(what).is_err() {
                return;
            }
        }
    });
    told
}

over_both_channels! {
    fn killed_while_a_credential_is_read(channel) {
        let mut world = World::desktop_before(Options { dunst: false, panel: false, keyring: true });
        world.configure(&settings(channel, LINEAR));
        let log = linear(&world, "never");
        world.start_serve();
        world.create("fix-login");
        world.store("linear.token", "lin_api_0123456789abcdefghijklmnop");
        works_again(&world, COMMENT);
        let before = steps(&log).len();

        begin(&world, COMMENT);
        world.question_of("fix-login");
        let (keyring, asked) = (keyring(&world), calls_to_keyring(&world));
        kill(keyring, Signal::SIGSTOP).unwrap();
        world.approve("fix-login", &[]);
        let first = asked.recv_timeout(SOON);
        world.kill_host();
        kill(keyring, Signal::SIGCONT).unwrap();
        assert!(first.is_ok(), "the keyring was never asked: {}", world.host_log());
        assert_eq!(back(&mut world), "126");
        let since = steps(&log)[before..].to_vec();
        assert!(!since.contains(&"begun".to_owned()), "{since:?}");
        assert_eq!((count(&world, "answered"), count(&world, "executed")), (2, 1));
        works_again(&world, COMMENT);
    }
}

// ---- a copy that is being written

const FILES: usize = 60;

/// What is below a folder of the project: each file's name and a sum of it.
fn sums(world: &World, dir: &Path) -> BTreeMap<String, String> {
    let output = world.command("sh").current_dir(dir).args(["-c", "sha256sum -- *"]).output();
    let line = |line: &str| {
        let (sum, name) = line.split_once("  ").unwrap();
        (name.to_owned(), sum.to_owned())
    };
    String::from_utf8(output.unwrap().stdout).unwrap().lines().map(line).collect()
}

over_both_channels! {
    fn killed_half_way_through_a_copy_to_the_host(channel) {
        let mut world = World::over(channel, "");
        world.create("fix-login");
        let make = format!(
            "mkdir -p big && for n in $(seq {FILES}); do head -c 3000000 /dev/urandom > big/$n; done; \
             cd big && sha256sum -- *"
        );
        let sent: BTreeMap<String, String> = world
            .box_ok("fix-login", &make)
            .lines()
            .map(|line| line.split_once("  ").unwrap())
            .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
            .collect();
        let copy = "agentbox-ctl cp toHost big landed";
        let dir = world.project().join("landed");
        let there = || std::fs::read_dir(&dir).into_iter().flatten().count();
        let mut tries = 0;
        loop {
            tries += 1;
            begin(&world, copy);
            world.approve("fix-login", &[]);
            // Without a pause: the moment is short. The host is held in it, then killed.
            let end = Instant::now() + SOON;
            while there() < 2 {
                assert!(Instant::now() < end, "nothing was written: {}", world.host_log());
            }
            kill(world.host_pid(), Signal::SIGSTOP).unwrap();
            if there() < FILES {
                break;
            }
            // Nobody looked in that moment, because the machine was busy.
            kill(world.host_pid(), Signal::SIGCONT).unwrap();
            assert!(tries < 5, "the copy was over before it could be stopped");
            eventually(SOON, "the copy ending", || {
                world.in_box("fix-login", "cat /tmp/code").status.success().then_some(())
            });
            std::fs::remove_dir_all(&dir).unwrap();
        }
        assert_eq!(killed_and_back(&mut world), "126");
        // Each file that is there is whole, and nothing else is.
        let found = sums(&world, &dir);
        for (name, sum) in &found {
            assert_eq!(sent.get(name), Some(sum), "{name} is half written");
        }
        let all: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(all.len(), found.len(), "{all:?}");
        assert_eq!((count(&world, "answered"), count(&world, "executed")), (tries, tries - 1));
        works_again(&world, copy);
        assert_eq!(sums(&world, &dir.join("big")), sent);
    }
}

// ---- a checkpoint that is being made

/// The images of checkpoints with one name, as the engine has them. They go with the test.
struct Images(String);

impl Images {
    fn list(&self) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let name = format!("agentbox/checkpoint:shop-{}-*", self.0);
            let filters = HashMap::from([("reference".to_owned(), vec![name])]);
            let all = query::ListImagesOptionsBuilder::default().filters(&filters).build();
            let found = docker().await.unwrap().list_images(Some(all)).await.unwrap();
            found.into_iter().flat_map(|image| image.repo_tags).collect()
        })
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        self.list().iter().for_each(|image| remove_image(image));
    }
}

over_both_channels! {
    fn killed_while_a_checkpoint_is_made(channel) {
        // A name of its own: the engine may have others.
        let images = Images(format!("killed-{channel}-{}", std::process::id()));
        let mut world = World::over(channel, "");
        world.create("fix-login");
        world.box_ok("fix-login", "head -c 400000000 /dev/urandom > /home/vscode/big");
        let create = format!("agentbox-ctl checkpoint create --name {}", images.0);
        begin(&world, &create);
        world.approve("fix-login", &[]);
        let state = |world: &World| world.json(&["list"])["boxes"][0]["state"].clone();
        eventually_or(SOON, "the box being frozen", || match state(&world) {
            now if now == "paused" => Ok(()),
            now => Err(now),
        });
        assert_eq!(killed_and_back(&mut world), "126");
        assert_eq!(state(&world), "running");
        assert_eq!(world.json(&["checkpoints"])["checkpoints"].as_array().unwrap().len(), 0);
        assert_eq!((count(&world, "answered"), count(&world, "executed")), (1, 0));
        // What the engine finished although nobody waited takes no room for ever.
        eventually_or(SOON, "the image nobody knows being removed", || {
            let left = images.list();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
        works_again(&world, &create);
        let listed = world.json(&["checkpoints"])["checkpoints"].clone();
        let image = listed[0]["id"].as_str().unwrap();
        // The one that was begun before may be finished only now.
        eventually_or(SOON, "only the image that is known", || match images.list() {
            left if left == [image] => Ok(()),
            left => Err(format!("{left:?}")),
        });
        world.ok(&["checkpoints", "rm", image, "--yes"]);
        assert!(images.list().is_empty());
    }
}
