import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')

/** What server/visibility decides on: the channels, hidden phones, the role and the rule of a field. */
const RAW_CHECKS = [
  /\.channelIds\b/,
  /\.hidePhoneNumbers\b/,
  /\brole [!=]== 'agent'/,
  /visibility [!=]== 'manager_only'/,
]
/** Where the rule of the role is made, and where staff are entered by hand. */
const MADE_IN = ['server/visibility/policy.ts', 'server/kernel/authenticate.ts']

test('what a staff member may see is decided in server/visibility alone', () => {
  const files = globSync(['server/**/*.ts', 'mcp/**/*.ts', 'packages/sandbox/**/*.ts'], { cwd: ROOT }).filter(
    (file) => !file.startsWith('server/domains/demo/') && !MADE_IN.includes(file),
  )
  assert.ok(files.length > 300)
  const found = files.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, n) =>
        RAW_CHECKS.some((check) => check.test(line)) ? [`${file}:${n + 1}: ${line.trim()}`] : [],
      ),
  )
  assert.deepEqual(found, [])
})
