#!/usr/bin/env python3
"""Draw a sequence picture from text: sequence.py TEXT SVG. With --check it only compares.

Lines of TEXT:
    actor NAME: label | second line     a column, from left to right
    step: label                         a band that begins a part of the story
    A -> B: label | second line         an arrow; A -> A is work inside A
    A --> B: label                      an answer
"""
import html
import sys

COLUMN, ROW, TOP, LEFT = 176, 36, 64, 100
STYLE = ("text{font:12px system-ui,sans-serif;fill:#1f2933}.s{font-size:11px;fill:#52606d}.h{font-weight:600}"
         "line{stroke:#9aa5b1}.a{stroke:#2f6fdb;stroke-width:1.5;fill:none}.d{stroke-dasharray:5 4}"
         ".b{fill:#eef3fb}.x{fill:#fff;stroke:#2f6fdb}.w{fill:#f7f9fc;stroke:#9aa5b1}")


def parse(text):
    actors, rows = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        head, found, label = line.partition(":")
        label = [part.strip() for part in label.split("|")]
        words = head.split()
        if not found or not words:
            sys.exit(f"line {number}: expected 'actor NAME:', 'step:' or 'A -> B:', found {line!r}")
        if words[0] == "actor" and len(words) == 2:
            actors[words[1]] = label
        elif words == ["step"]:
            rows.append(("step", None, None, label))
        elif len(words) == 3 and words[1] in ("->", "-->") and words[0] in actors and words[2] in actors:
            rows.append((words[1], words[0], words[2], label))
        else:
            sys.exit(f"line {number}: expected 'actor NAME:', 'step:' or 'A -> B:', found {line!r}")
    return actors, rows


def text_at(x, y, lines, kind="", anchor="middle"):
    return "".join(f'<text x="{x}" y="{y + 14 * i}" text-anchor="{anchor}" class="{kind if i == 0 else "s"}">'
                   f"{html.escape(line)}</text>" for i, line in enumerate(lines))


def draw(actors, rows):
    at = {name: LEFT + COLUMN * i for i, name in enumerate(actors)}
    width = LEFT * 2 + COLUMN * (len(actors) - 1)
    out, y = [], TOP + 30
    for kind, a, b, label in rows:
        extra = 14 * (len(label) - 1)
        y += extra if kind != "step" and a != b else 0  # labels grow upward from their arrow
        if kind == "step":
            out.append(f'<rect class="b" x="8" y="{y - 14}" width="{width - 16}" height="24" rx="4"/>')
            out.append(text_at(18, y + 3, label, "h", "start"))
        elif a == b:
            out.append(f'<rect class="w" x="{at[a] - 82}" y="{y - 13}" width="164" height="{14 * len(label) + 10}" rx="4"/>')
            out.append(text_at(at[a], y + 3, label))
        else:
            tip = -7 if at[b] > at[a] else 7
            dash = " d" if kind == "-->" else ""
            out.append(f'<path class="a{dash}" d="M{at[a]} {y + 8}H{at[b]}m{tip} -4l{-tip} 4l{tip} 4"/>')
            out.append(text_at((at[a] + at[b]) / 2, y + 3 - extra, label))
        y += ROW + (extra if a == b else 0)
    height = y + 8
    back = [f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{height - 8}"/>' for x in at.values()]
    heads = [f'<rect class="x" x="{at[n] - 78}" y="14" width="156" height="46" rx="6"/>' + text_at(at[n], 33, label, "h")
             for n, label in actors.items()]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
            f'<style>{STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>\n'
            + "\n".join(back + heads + out) + "\n</svg>\n")


def main():
    names = [a for a in sys.argv[1:] if a != "--check"]
    picture = draw(*parse(open(names[0]).read()))
    if "--check" in sys.argv:
        if open(names[1]).read() != picture:
            sys.exit(f"{names[1]} is older than {names[0]}; make it with {sys.argv[0]} {names[0]} {names[1]}")
        return
    open(names[1], "w").write(picture)


main()
