import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { equalize } from './equalize.ts'
import type { RecordedAnswer } from './preload.ts'

/**
 * Compares recordings (`preload.ts`) of the product before and after a change:
 *
 * `node tools/recording/compare.ts BEFORE [BEFORE…] AFTER`
 *
 * The answers of a test file are a set: how often it asked, and in which order, does not count. Answers that two
 * recordings of before do not share depend on chance, and do not count. Shows what else is in one version alone, and
 * exits with 1 when there is any.
 */
const folders = process.argv.slice(2)
if (folders.length < 2) throw new Error('Usage: node tools/recording/compare.ts BEFORE [BEFORE…] AFTER')
const [after, ...before] = folders.toReversed() as [string, ...string[]]

const read = (folder: string, file: string): Set<string> => {
  const path = join(folder, file)
  if (!existsSync(path)) return new Set()
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
  return new Set(lines.map((line) => equalize(JSON.parse(line) as RecordedAnswer)))
}

const files = [...new Set(folders.flatMap((folder) => readdirSync(folder)))].toSorted()
let differences = 0
for (const file of files) {
  const recordings = before.map((folder) => read(folder, file))
  const now = read(after, file)
  const lines = [
    ...[...recordings[0]!]
      .filter((line) => recordings.every((each) => each.has(line)) && !now.has(line))
      .map((line) => `- ${line}`),
    ...[...now].filter((line) => !recordings.some((each) => each.has(line))).map((line) => `+ ${line}`),
  ]
  if (lines.length === 0) continue
  differences += lines.length
  console.log(`${file.replaceAll('__', '/')} (${now.size} answers)\n${lines.join('\n')}\n`)
}
console.log(`${differences} differences in ${files.length} files`)
process.exitCode = differences === 0 ? 0 : 1
