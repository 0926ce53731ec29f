"""Lookups of a few lines, with which tests fill in the templates of adapters."""

from __future__ import annotations

from typing import Final

FINDERS: Final = {
    "go": (
        'return nil, fmt.Errorf("call your library here, with %s and %d", directory, offset)',
        """names, _ := filepath.Glob(filepath.Join(directory, "*.log"))
	for i, name := range names {
		if i+1 < len(names) {
			base := filepath.Base(names[i+1])[:20]
			if next, _ := strconv.ParseInt(base, 10, 64); next <= offset {
				continue
			}
		}
		data, _ := os.ReadFile(name)
		for at := 0; at+17 <= len(data); at += 12 + int(binary.BigEndian.Uint32(data[at+8:])) {
			first := int64(binary.BigEndian.Uint64(data[at:]))
			last := first
			if data[at+16] == 2 {
				last += int64(binary.BigEndian.Uint32(data[at+23:]))
			}
			if last >= offset {
				return object{"position": at, "baseOffset": strconv.FormatInt(first, 10)}, nil
			}
		}
	}
	return nil, nil""",
    ),
    "rust": (
        'Err(format!("call your library here, with {} and {offset}", directory.display()))',
        """let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|end| end == "log"));
    names.sort();
    for (i, name) in names.iter().enumerate() {
        let next = names.get(i + 1).map(|path| path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap());
        if next.is_some_and(|base| base <= offset) {
            continue;
        }
        let data = std::fs::read(name).unwrap();
        let number = |at: usize, size: usize| data[at..at + size].iter().fold(0, |sum, byte| sum << 8 | *byte as i64);
        let mut at = 0;
        while at + 17 <= data.len() {
            let first = number(at, 8);
            let last = if data[at + 16] == 2 { first + number(at + 23, 4) } else { first };
            if last >= offset {
                return Ok(json!({"position": at, "baseOffset": first.to_string()}));
            }
            at += 12 + number(at + 8, 4) as usize;
        }
    }
    Ok(Value::Null)""",
    ),
    "java": (
        'throw new IllegalStateException("call your library here, with " + directory + " and " + offset);',
        """File[] logs = directory.toFile().listFiles((parent, name) -> name.endsWith(".log"));
        Arrays.sort(logs);
        for (int i = 0; i < logs.length; i++) {
            if (i + 1 < logs.length && Long.parseLong(logs[i + 1].getName().substring(0, 20)) <= offset) continue;
            java.nio.ByteBuffer data = java.nio.ByteBuffer.wrap(Files.readAllBytes(logs[i].toPath()));
            for (int at = 0; at + 17 <= data.limit(); at += 12 + data.getInt(at + 8)) {
                long first = data.getLong(at), last = data.get(at + 16) == 2 ? first + data.getInt(at + 23) : first;
                if (last >= offset) return "{\\"position\\":" + at + ",\\"baseOffset\\":\\"" + first + "\\"}";
            }
        }
        return "null";""",
    ),
    "javascript": (
        "throw new Error(`call your library here, with ${directory} and ${offset}`);",
        """const { readdirSync, readFileSync } = await import("node:fs");
  const names = readdirSync(directory).filter((name) => name.endsWith(".log")).sort();
  for (const [i, name] of names.entries()) {
    if (i + 1 < names.length && BigInt(names[i + 1].slice(0, 20)) <= offset) continue;
    const data = readFileSync(join(directory, name));
    for (let at = 0; at + 17 <= data.length; at += 12 + data.readInt32BE(at + 8)) {
      const first = data.readBigInt64BE(at);
      const last = data[at + 16] === 2 ? first + BigInt(data.readInt32BE(at + 23)) : first;
      if (last >= offset) return { position: at, baseOffset: String(first) };
    }
  }
  return null;""",
    ),
}
"""What a template has in place of the library, and what finds an entry instead, by language."""
