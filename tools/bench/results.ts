import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'

const readme = fileURLToPath(new URL('README.md', import.meta.url))

/** The commit that is measured; with a plus sign where the checkout differs from it. */
export const describeCommit = (): string => {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
    }).trim()
  const isChanged = git('status', '--porcelain', '--', '.', ':!tools') !== ''
  return git('rev-parse', '--short=10', 'HEAD') + (isChanged ? '+' : '')
}

/** What results depend on, in one line. */
const describeMachine = async (adminUrl: string): Promise<string> => {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => {} })
  const [row] = await sql<{ version: string }[]>`select current_setting('server_version') as version`
  await sql.end()
  const version = row!.version.split(' ')[0]
  const date = new Date().toISOString().slice(0, 10)
  const cores = availableParallelism()
  return `${date}, commit ${describeCommit()}, ${cores} cores, PostgreSQL ${version}, Node ${process.versions.node}`
}

/** Replaces the text between the markers of this name in README.md. */
export const writeResults = async (
  name: string,
  lines: readonly string[],
  adminUrl: string,
): Promise<void> => {
  const [begin, end] = [`<!-- results ${name} -->`, `<!-- end of results ${name} -->`]
  const text = readFileSync(readme, 'utf8')
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`tools/bench/README.md has no "${begin}" before "${end}"`)
  const table = ['```', await describeMachine(adminUrl), ...lines, '```'].join('\n')
  writeFileSync(readme, `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`)
}
