import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { sqlTemplates } from '../../tests/storage/sql-templates.ts'

/**
 * `node tools/unsent-sql/run.ts [FILE…]`: runs these tests, or all, and lists the raw SQL templates of storage/ of
 * which none of their processes sent a statement. They are recognized by their text, so that a short one may count as
 * sent when another has the same words.
 */
process.chdir(resolve(import.meta.dirname, '../..'))
const folder = mkdtempSync(join(tmpdir(), 'wcrm-sent-'))
try {
  const preload = new URL('./preload.ts', import.meta.url).href
  const { status } = spawnSync(process.execPath, ['scripts/test.ts', ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${preload}`,
      WCRM_SENT_SQL: folder,
    },
  })
  const sent = new Set(
    readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n')),
  )
  const templates = sqlTemplates()
  const unsent = templates.filter(({ file, line }) => !sent.has(`${file}:${line}`))
  for (const { file, line, chunks } of unsent) console.log(`${file}:${line} ${chunks.join('…').slice(0, 80)}`)
  console.log(`${unsent.length} of ${templates.length} templates were not sent`)
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
