use super::*;
use crate::samples;
use protocol::question::Outcome as Ended;

fn now() -> Zoned {
    samples::now().to_zoned(jiff::tz::TimeZone::UTC)
}

/// A session in which the push of the samples, `3fa9`, has been asked.
fn session() -> Session {
    let mut session = Session::new(Look::PLAIN);
    session.event(HostEvent::Asked { question: samples::questions().remove(0) }, &now()).unwrap();
    session
}

fn said(steps: &[Step]) -> String {
    let texts = steps.iter().filter_map(|s| match s {
        Step::Say(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn verdict(steps: &[Step]) -> Option<Verdict> {
    match steps {
        [Step::Ask(Request::Answer { id, digest, verdict, surface })] => {
            assert_eq!(*id, samples::questions()[0].id);
            assert_eq!((digest.as_str(), *surface), ("d1", Surface::Terminal));
            Some(*verdict)
        }
        _ => None,
    }
}

#[test]
fn a_question_is_shown_whole_with_its_code() {
    let mut session = Session::new(Look::PLAIN);
    let all = samples::questions();
    let texts: Vec<_> = all
        .into_iter()
        .map(|question| said(&session.event(HostEvent::Asked { question }, &now()).unwrap()))
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn relay_19_56_only_the_word_with_the_code_is_an_answer() {
    for line in [
        "",
        " ",
        "y",
        "yes",
        "a",
        "allow",
        "3fa9",
        "allow 3fa",
        "allow 3fa9c",
        "allow  77e0",
        "allow 3fa9 now",
        "allow allow 3fa9",
        "d",
        "deny",
        "\u{1b}[A",
        "allow\u{a0}3fa9",
    ] {
        let steps = session().line(line, &now());
        assert!(!steps.iter().any(|s| matches!(s, Step::Ask(_))), "{line:?}: {steps:?}");
    }
    for (line, wanted) in [
        ("allow 3fa9", Verdict::AllowOnce),
        ("  Allow   3FA9 ", Verdict::AllowOnce),
        ("deny 3fa9", Verdict::Deny),
    ] {
        assert_eq!(verdict(&session().line(line, &now())), Some(wanted), "{line:?}");
    }
}

#[test]
fn relay_a23_a_code_belongs_to_one_question_for_good() {
    let mut session = session();
    let first = samples::questions().remove(0);
    let ended = HostEvent::Resolved {
        id: first.id.clone(),
        box_name: "fix-login".into(),
        outcome: Ended::Withdrawn,
    };
    assert!(said(&session.event(ended, &now()).unwrap()).contains("3fa9  fix-login: withdrawn"));
    // The box asks for something else, and is lucky with its id.
    let mut other = first.clone();
    other.id = "3fa9ffff000000000000000000000009".parse().unwrap();
    other.digest = "d9".into();
    let shown = said(&session.event(HostEvent::Asked { question: other }, &now()).unwrap());
    assert!(shown.contains("allow 3fa9f "), "{shown}");
    let late = session.line("allow 3fa9", &now());
    assert!(said(&late).contains("3fa9 is over"), "{late:?}");
}

#[test]
fn a_rule_is_made_in_small_steps_and_confirmed() {
    let mut session = session();
    let mut told = String::new();
    for line in ["remember 3fa9", "2", "2", "1"] {
        told += &format!("> {line}\n{}\n", said(&session.line(line, &now())));
    }
    insta::assert_snapshot!(told);
    let wanted = Verdict::Remember { reach: Reach::Project, breadth: Breadth::Kind, seconds: 3600 };
    assert_eq!(verdict(&session.line("allow 3fa9", &now())), Some(wanted));
}

#[test]
fn whom_a_rule_covers_is_no_choice_where_there_is_one_only() {
    let mut question = samples::questions().remove(0);
    let remember = question.remember.as_mut().unwrap();
    (remember.kind, remember.only) = (None, Some(Reach::Project));
    let mut session = Session::new(Look::PLAIN);
    session.event(HostEvent::Asked { question }, &now());
    assert!(said(&session.line("remember 3fa9", &now())).contains("Until?"));
    assert!(said(&session.line("1", &now())).contains("Let every box of shop-api push"));
    let wanted =
        Verdict::Remember { reach: Reach::Project, breadth: Breadth::Exact, seconds: 3600 };
    assert_eq!(verdict(&session.line("allow 3fa9", &now())), Some(wanted));
}

#[test]
fn a_rule_may_have_any_of_the_offered_ends() {
    for (word, wanted) in
        [("2", 86_400), ("3", 30 * 86_400), ("4", Remember::ALWAYS), ("2h", 7200), ("90d", 0)]
    {
        let mut session = session();
        for line in ["remember 3fa9", "box", "exactly", word] {
            session.line(line, &now());
        }
        let seconds = match verdict(&session.line("allow 3fa9", &now())) {
            Some(Verdict::Remember { seconds, .. }) => seconds,
            // The rule was dropped, so this is a plain yes.
            Some(Verdict::AllowOnce) => 0,
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!(seconds, wanted, "{word}");
    }
}

#[test]
fn enter_and_nonsense_make_no_rule_and_answer_nothing() {
    for steps in [1, 2, 3, 4] {
        let mut session = session();
        for line in ["remember 3fa9", "1", "1", "1"].into_iter().take(steps) {
            session.line(line, &now());
        }
        let left = session.line("", &now());
        assert!(said(&left).contains("the question stays open"), "{left:?}");
        assert!(session.making.is_none());
    }
}

#[test]
fn what_is_asked_every_time_cannot_be_remembered() {
    let mut session = Session::new(Look::PLAIN);
    let question = samples::questions().remove(1);
    let shown = said(&session.event(HostEvent::Asked { question }, &now()).unwrap());
    assert!(!shown.contains("remember"), "{shown}");
    assert!(said(&session.line("remember 77e0", &now())).contains("cannot be remembered"));
    assert!(session.making.is_none());
}

#[test]
fn going_on_without_files_is_offered_where_there_are_some() {
    let mut files = samples::questions().remove(0);
    files.answers.without = Some("Without these files".into());
    let mut with_files = Session::new(Look::PLAIN);
    let shown = said(&with_files.event(HostEvent::Asked { question: files }, &now()).unwrap());
    assert!(shown.contains("or  deny 3fa9  or  without 3fa9  or  remember"), "{shown}");
    assert_eq!(verdict(&with_files.line("without 3fa9", &now())), Some(Verdict::Without));
    for line in ["without", "w 3fa9", "without 77e0"] {
        let steps = with_files.line(line, &now());
        assert!(!steps.iter().any(|s| matches!(s, Step::Ask(_))), "{line:?}: {steps:?}");
    }
    let refused = session().line("without 3fa9", &now());
    assert!(said(&refused).contains("lists no files"), "{refused:?}");
    assert_eq!(verdict(&refused), None);
}

#[test]
fn a_question_that_ends_takes_the_rule_in_the_making_along() {
    let mut session = session();
    session.line("remember 3fa9", &now());
    let snapshot =
        HostEvent::Snapshot { status: samples::status(), boxes: vec![], questions: vec![] };
    let told = said(&session.event(snapshot, &now()).unwrap());
    assert!(told.contains("3fa9  fix-login: no longer open"), "{told}");
    let steps = session.line("1", &now());
    assert!(said(&steps).contains("no answer"), "{steps:?}");
}

#[test]
fn a_question_that_comes_meanwhile_does_not_take_the_place_of_the_choice() {
    let mut session = session();
    session.line("remember 3fa9", &now());
    let question = samples::questions().remove(1);
    let told = said(&session.event(HostEvent::Asked { question }, &now()).unwrap());
    assert!(told.contains("allow 77e0") && told.ends_with("new ones too"), "{told}");
}

#[test]
fn a_box_is_muted_from_its_question() {
    let steps = session().line("mute 3fa9", &now());
    let [Step::Ask(Request::Mute { target, seconds: Some(3600) })] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(target.query.as_deref(), Some("b0000000a"));
}

#[test]
fn the_same_question_is_shown_once() {
    let mut session = session();
    let question = samples::questions().remove(0);
    assert!(session.event(HostEvent::Asked { question }, &now()).is_none());
    assert!(said(&session.line("show", &now())).contains("git push origin"));
    assert!(matches!(session.line("quit", &now())[..], [Step::Leave]));
}
