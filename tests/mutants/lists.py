"""Reads the lists of mutants, *.toml, and finds each mutant in the sources."""
import tomllib
from collections import Counter

import simple
import written
from mutants import FOLDER, Mistake, Source


class Lists:
    """Gathers the sites, and what is wrong."""

    def __init__(self):
        self.sites, self.wrong = [], []
        self.sources = {}  # by file

    def read(self, path):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for file, functions in content.pop("simple", {}).items():
            for name, text in functions.items():
                for operator, word in simple.split(text):
                    self._add(simple.site, path.stem, file, name, operator, word)
        for file, entries in content.items():
            for what, entry in entries.items():
                self._add(written.site, path.stem, file, what, entry)

    def _add(self, site, part, file, *entry):
        try:
            if file not in self.sources:
                self.sources[file] = Source(file)
            self.sites.append(site(part, self.sources[file], *entry))
        except (Mistake, OSError) as reason:
            self.wrong.append(f"{part}.toml: {file}: {reason}")

    def check(self):
        """Raises Mistake, naming each entry that does not fit the sources, or another one."""
        self.wrong += [f"{b.mutant}: meets, and is neither inside nor around, {a.mutant}"
                       for own in sites_by_file(self.sites).values() for i, a in enumerate(own) for b in own[:i]
                       if a.meets(b) and not a.holds(b) and not b.holds(a)]
        times = Counter(site.mutant.id for site in self.sites)
        self.wrong += [f"{site.mutant}: listed twice" for site in self.sites if times[site.mutant.id] > 1]
        if self.wrong:
            raise Mistake("\n".join(dict.fromkeys(self.wrong)))


def read():
    """The sites of all mutants."""
    lists = Lists()
    for path in sorted(FOLDER.glob("*.toml")):
        lists.read(path)
    lists.check()
    return lists.sites


def sites_by_file(sites):
    by_file = {}
    for site in sites:
        by_file.setdefault(site.mutant.file, []).append(site)
    return by_file
