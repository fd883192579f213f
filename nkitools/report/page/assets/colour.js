// The parts of source lines that are coloured: words of the language, texts, comments and numbers of Python and C++.

const WORDS = {
  py: "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case",
  cpp: "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for friend if inline int int8_t int16_t int32_t int64_t long namespace new noexcept nullptr operator override private protected public return short signed size_t sizeof static struct switch template this throw true try typedef typename uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile while",
};
const PYTHON = /("""|'''|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(#.*)|(\b\d[\w.]*\b|\.\d\w*)|([A-Za-z_]\w*)|(@[\w.]+)/g;
const CPP = /("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\/\/.*|\/\*|^\s*#\s*\w+)|(\b\d[\w.']*\b|\.\d\w*)|([A-Za-z_]\w*)|(\b\B)/g;

// Of each line its parts, [class, text] each; a text or a comment may go over several lines.
export function colored(lines, name) {
  const isCpp = /\.(c|cc|cpp|cxx|h|hpp)$/.test(name), words = new Set(WORDS[isCpp ? "cpp" : "py"].split(" "));
  let open = ""; // what ends the text or the comment that a line begins in
  return lines.map((line) => {
    const parts = [];
    let from = 0;
    const add = (kind, text) => text && parts.push([kind, text]);
    const closed = () => {
      const end = line.indexOf(open, from), stop = end < 0 ? line.length : end + open.length;
      add(open === "*/" ? "comment" : "string", line.slice(from, stop));
      from = stop;
      if (end >= 0) open = "";
    };
    if (open) closed();
    const pattern = new RegExp(isCpp ? CPP : PYTHON);
    pattern.lastIndex = from;
    for (let found; !open && (found = pattern.exec(line));) {
      const [text, string, comment, number, word, decorator] = found;
      add("", line.slice(from, found.index));
      from = found.index + text.length;
      if (string === '"""' || string === "'''" || comment === "/*") {
        open = comment ? "*/" : string;
        from = found.index + text.length;
        add(comment ? "comment" : "string", text);
        closed();
        pattern.lastIndex = from;
        continue;
      }
      add(string ? "string" : comment ? "comment" : number ? "number" : decorator ? "decorator" : word && words.has(word) ? "word" : "", text);
    }
    if (!open || from < line.length) add(open ? "string" : "", line.slice(from));
    return parts;
  });
}
