//! What would change, as people read it.

use similar::TextDiff;

/// A file that is not there is `/dev/null`, as elsewhere.
pub fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name = |side: &str, text: Option<&str>| text.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let diff = TextDiff::from_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff().header(&name("a", before), &name("b", after)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_the_file_and_the_lines() {
        let expected = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n one\n+new\n two\n";
        assert_eq!(unified("x", Some("one\ntwo\n"), Some("one\nnew\ntwo\n")), expected);
        assert!(unified("x", None, Some("one\n")).starts_with("--- /dev/null\n+++ b/x\n"));
        assert!(unified("x", Some("one\n"), None).contains("+++ /dev/null\n"));
        assert_eq!(unified("x", Some("one\n"), Some("one\n")), "");
    }
}
