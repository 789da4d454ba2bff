//! The upstreams that nginx of this machine has already: another one of the same name would be refused as duplicate.

use std::collections::BTreeSet;
use std::process::Command;

use crate::config::BalancerProgram;
use crate::external::installation::Installation;

/// Their names, as `nginx -T` tells them; none where there is no nginx, or where this user may not read its files.
/// Files that begin with a line of `own` count for nothing: they are replaced.
pub fn present(own: &str) -> BTreeSet<String> {
    let Ok(installation) = Installation::find(BalancerProgram::Nginx) else {
        return BTreeSet::new();
    };
    let told = Command::new(installation.path).args(["-T", "-q"]).output();
    told.map_or_else(|_| BTreeSet::new(), |told| names(&String::from_utf8_lossy(&told.stdout), own))
}

/// A name that is not taken.
pub fn free(name: &str, taken: &BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

fn names(configuration: &str, own: &str) -> BTreeSet<String> {
    let files = configuration.split("# configuration file ");
    let others = files.filter(|file| !file.contains(own));
    let lines = others.flat_map(str::lines);
    let named = lines.filter_map(|line| {
        let rest = line.trim_start().strip_prefix("upstream")?;
        let name = rest.starts_with(char::is_whitespace).then(|| rest.trim_start())?;
        name.split(|c: char| c.is_whitespace() || c == '{').next()
    });
    named.map(|name| name.trim_matches(['"', '\'']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_files_are_taken() {
        let told = "# configuration file /etc/nginx/nginx.conf:\nhttp {\n  include conf.d/*;\n}\n\
                    # configuration file /etc/nginx/conf.d/a.conf:\nupstream shop {\n}\n  upstream \"old\"{}\n# upstream no {\n\
                    # configuration file /etc/nginx/conf.d/b.conf:\n# by tenfold export.\nupstream ours {\n}\n";
        let taken = names(told, "tenfold export");
        assert_eq!(taken, ["old", "shop"].map(str::to_owned).into());
        assert_eq!(free("shop", &taken), "shop-2");
        assert_eq!(free("ours", &taken), "ours");
    }
}
