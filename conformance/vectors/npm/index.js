import { readFileSync } from 'node:fs'

/** Cases of the conformance suite: objects with id, op, result, request and expect. */
export const cases = () =>
  readFileSync(new URL('vectors.jsonl', import.meta.url), 'utf8').trimEnd().split('\n').map(line => JSON.parse(line))
