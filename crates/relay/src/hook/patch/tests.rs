use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(paths(text), expected, "{text}");
}

#[track_caller]
fn check_command(text: &str, expected: &[&str]) {
    assert_eq!(paths_in_command(text), expected, "{text}");
}

fn patch(lines: &str) -> String {
    format!("*** Begin Patch\n{lines}\n*** End Patch\n")
}

#[test]
fn every_file_that_a_patch_names_is_found_once() {
    let lines = "*** Update File: a.txt\n@@\n-x\n+y\n*** Add File: sub/b.txt\n+new\n*** Delete File: c.txt\n\
                 *** Update File: d.txt\n*** Move to: e/d.txt\n@@\n-x\n+y\n*** Update File: a.txt\n@@\n-p\n+q";
    check(&patch(lines), &["a.txt", "sub/b.txt", "c.txt", "d.txt", "e/d.txt"]);
}

#[test]
fn names_are_taken_as_they_are_written() {
    check(&patch("*** Add File: /repo/abs.txt\n+x"), &["/repo/abs.txt"]);
    check(&patch("*** Add File: two words.txt \n+x"), &["two words.txt"]);
    check(&patch("*** Add File: \"quoted\".txt\n+x"), &["\"quoted\".txt"]);
    check(&patch("*** Add File: ../out/é.txt\n+x"), &["../out/é.txt"]);
    check(&patch("*** Add File:tight.txt\n+x"), &["tight.txt"]);
}

#[test]
fn a_patch_with_other_line_ends_is_the_same_patch() {
    let lines = "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-x\n+y";
    check(&patch(lines).replace('\n', "\r\n"), &["a.txt", "b.txt"]);
}

#[test]
fn what_a_patch_writes_is_not_what_it_touches() {
    let inner = "+*** Begin Patch\n+*** Update File: inner.txt\n+*** Move to: gone.txt\n+*** End Patch";
    check(&patch(&format!("*** Add File: doc.md\n{inner}\n*** Delete File: z.txt")), &["doc.md", "z.txt"]);
    let around = "@@\n *** Update File: context.txt\n-*** Delete File: old.txt\n+*** Add File: new.txt";
    check(&patch(&format!("*** Update File: doc.md\n{around}")), &["doc.md"]);
    check(&patch(&format!("*** Update File: doc.md\n*** Move to: m.md\n{around}")), &["doc.md", "m.md"]);
}

#[test]
fn a_name_counts_only_where_it_means_something() {
    check("*** Update File: a.txt\n", &[]);
    check(&format!("{}*** Add File: after.txt\n", patch("*** Add File: in.txt\n+x")), &["in.txt"]);
    check(&patch("*** Move to: nowhere.txt"), &[]);
    check(&patch("*** Add File: a.txt\n+x\n*** Move to: b.txt"), &["a.txt"]);
    check("*** Begin Patch\n  *** Delete File: indented.txt\n", &["indented.txt"]);
}

#[test]
fn several_patches_in_one_text_are_read_one_after_the_other() {
    let both = patch("*** Add File: a\n+x") + "words between\n*** Add File: no\n" + &patch("*** Delete File: b");
    check(&both, &["a", "b"]);
}

#[test]
fn a_hostile_patch_names_nothing() {
    for text in ["", "\n", "***", "*** Begin Patch", "*** Begin Patch\n*** Add File:", "\u{feff}*** Begin Patch\n"] {
        check(text, &[]);
    }
    check(&patch("*** Add File:   \n*** Delete File: a\0b\n*** Rename File: x"), &[]);
}

#[test]
fn a_patch_that_the_shell_reads_is_found() {
    let text = patch("*** Add File: a.txt\n+x");
    for open in ["<<'EOF'", "<<\"EOF\"", "<<EOF", "<< EOF", "<<\\EOF", "<<-EOF"] {
        check_command(&format!("apply_patch {open}\n{text}EOF\n"), &["a.txt"]);
    }
    check_command(&format!("apply_patch <<'EOF'\n{text}"), &["a.txt"]);
    check_command(&format!("apply_patch <<'EOF'\r\n{}EOF\r\n", text.replace('\n', "\r\n")), &["a.txt"]);
    check_command(&format!("apply_patch '{text}'"), &["a.txt"]);
    check_command(&format!("apply_patch <<-E\n\t{}\tE\n", text.replace('\n', "\n\t")), &["a.txt"]);
}

#[test]
fn a_patch_is_seen_from_the_folder_in_which_it_is_applied() {
    let body = format!("<<'EOF'\n{}EOF\n", patch("*** Add File: a.txt\n+x\n*** Delete File: /abs.txt"));
    check_command(&format!("cd sub && apply_patch {body}"), &["sub/a.txt", "/abs.txt"]);
    check_command(&format!("cd sub; cd deeper\napply_patch {body}"), &["sub/deeper/a.txt", "/abs.txt"]);
    check_command(&format!("cd 'two words' && apply_patch {body}"), &["two words/a.txt", "/abs.txt"]);
    check_command(&format!("cd \"two words\" && apply_patch {body}"), &["two words/a.txt", "/abs.txt"]);
    check_command(&format!("cd two\\ words && apply_patch {body}"), &["two words/a.txt", "/abs.txt"]);
    check_command(&format!("cd /repo/x && apply_patch {body}"), &["/repo/x/a.txt", "/abs.txt"]);
    check_command(&format!("cd -- sub && apply_patch {body}"), &["sub/a.txt", "/abs.txt"]);
    check_command(&format!("(cd sub && ls) && apply_patch {body}"), &["a.txt", "/abs.txt"]);
    check_command(&format!("(cd sub && apply_patch {body})"), &["sub/a.txt", "/abs.txt"]);
}

#[test]
fn a_folder_that_only_the_shell_knows_is_not_guessed() {
    let body = format!("<<'EOF'\n{}EOF\n", patch("*** Add File: a.txt\n+x\n*** Delete File: /abs.txt"));
    for folder in ["\"$DIR\"", "$(pwd)", "~/x", "s*", "-", "`pwd`", "", "{a,b}"] {
        check_command(&format!("cd {folder} && apply_patch {body}"), &["/abs.txt"]);
    }
    check_command(&format!("cd $X && cd /repo && apply_patch {body}"), &["/repo/a.txt", "/abs.txt"]);
    check_command(&format!("pushd sub; popd; apply_patch {body}"), &["/abs.txt"]);
}

#[test]
fn several_patches_of_one_command_are_all_found() {
    let one = |name: &str| format!("apply_patch <<'EOF'\n{}EOF\n", patch(&format!("*** Add File: {name}\n+x")));
    check_command(&format!("{}cd sub\n{}", one("a"), one("b")), &["a", "sub/b"]);
    let two = format!("apply_patch <<A && cat <<B\n{}A\n{}B\n", patch("*** Add File: a\n+x"), patch("*** Add File: b"));
    check_command(&two, &["a"]);
}

#[test]
fn what_another_command_reads_or_says_is_no_patch() {
    let text = patch("*** Add File: a.txt\n+x");
    check_command(&format!("cat > notes.md <<'DOC'\napply_patch <<'EOF'\n{text}EOF\nDOC\n"), &[]);
    check_command(&format!("echo apply_patch '{text}'"), &[]);
    check_command(&format!("# apply_patch <<'EOF'\n{text}"), &[]);
    check_command("apply_patch < patch.txt", &[]);
    check_command("cat patch.txt | apply_patch", &[]);
    check_command("apply_patch <<< word", &[]);
    check_command("git status", &[]);
}

proptest! {
    #[test]
    fn no_text_is_too_hostile(text in "(?s).{0,200}", words in "(apply_patch|cd|<<|<<-|EOF|'|\"|\\\\|\n|\\(|\\)|;| |\\*\\*\\* (Begin Patch|Add File: a|Move to: b)){0,40}") {
        paths(&text);
        paths_in_command(&text);
        paths(&words);
        paths_in_command(&words);
    }

    #[test]
    fn content_never_names_a_file(lines in proptest::collection::vec("[-+ ](\\*\\*\\* (Add|Update|Delete) File: x|\\*\\*\\* Move to: y|\\PC{0,20})", 0..12)) {
        let text = patch(&format!("*** Update File: a.txt\n@@\n{}", lines.join("\n")));
        prop_assert_eq!(paths(&text), ["a.txt"]);
    }
}
