//! “Did you mean …?”

const MOST: usize = 2;

/// The known word nearest to this one, if it is at most two letters away.
pub fn similar<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    similar_within(word, known, MOST)
}

/// The same with at most so many letters, of two.
pub fn similar_within<'a>(word: &str, known: &[&'a str], most: usize) -> Option<&'a str> {
    let near = known.iter().map(|one| (distance(word, one), *one));
    near.filter(|(far, one)| *far <= most && *far < one.len()).min().map(|(_, one)| one)
}

/// Letters to change, add, remove or swap with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > MOST {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j - 1] + same).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found() {
        let known = ["restart", "command", "env", "ready_when"];
        assert_eq!(similar("restartt", &known), Some("restart"));
        assert_eq!(similar("comand", &known), Some("command"));
        assert_eq!(similar("evn", &known), Some("env"));
        assert_eq!(similar("readywhen", &known), Some("ready_when"));
        assert_eq!(similar("image", &known), None);
        assert_eq!(similar("x", &["as"]), None);
    }
}
