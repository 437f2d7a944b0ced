import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { processEnvironment } from '../process.ts'
import { listen } from './fake-server.ts'
import { useImportFiles } from './import-files.ts'

const files = useImportFiles()
const skip = process.platform === 'win32'

/** Runs a command that may write so many blocks of 512 bytes to a file. */
const runLimited = (
  blocks: number,
  words: readonly string[],
  env: Record<string, string>,
  stdin = '',
): Promise<{ code: unknown; stderr: string }> =>
  new Promise((resolve) => {
    const shell = ['-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', process.execPath, 'bin/wcrm.js', ...words]
    const options = { env: { ...processEnvironment, TMPDIR: files.folder, HOME: files.folder, ...env } }
    const child = execFile('sh', shell, options, (error, _stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stderr }),
    )
    child.stdin!.end(stdin)
  })

const refuses = ({ code, stderr }: { code: unknown; stderr: string }, what: string): void => {
  assert.equal(code, 1, stderr)
  assert.ok(
    stderr.includes(`Cannot write ${what}: it would be larger than a file may be there (EFBIG).`),
    stderr,
  )
}

const temporary = `a temporary file in ${files.folder} (TMPDIR)`

everyDatabase('A command whose disk is full', (server, database) => {
  it('names the file of an export, or the folder of what it prints', { skip }, async () => {
    const { workspace, call } = await files.createScene(server())
    for (let n = 0; n < 5; n++)
      await call('crm_upsert_contact', { phone: `+1555010010${n}`, name: 'x'.repeat(255) })
    const env = files.envFor(server(), workspace.owner.key)
    const output = join(files.folder, `contacts-${database}.csv`)
    refuses(await runLimited(1, ['contacts', 'export', '--output', output], env), output)
    assert.ok(!existsSync(output))
    refuses(await runLimited(1, ['contacts', 'export'], env), temporary)
  })

  it('names the folder of rows that are piped into an import', { skip }, async () => {
    const { workspace } = await files.createScene(server())
    const env = files.envFor(server(), workspace.owner.key)
    const rows = `phone,name\n${'+15550100200,Ann\n'.repeat(100)}`
    refuses(await runLimited(1, ['contacts', 'import', '-'], env, rows), temporary)
  })

  it('names the file of rows that failed, which goes on where it ended', { skip }, async () => {
    const { workspace } = await files.createScene(server())
    const env = {
      ...files.envFor(server(), workspace.owner.key),
      XDG_STATE_HOME: join(files.folder, database),
    }
    const file = files.writeRows(`phone,name\n${'1,Ann\n'.repeat(100)}`)
    const failures = join(files.folder, `failures-${database}.ndjson`)
    const argv = ['contacts', 'import', file, '--failures', failures]
    // Room for the state of the import, and for a part of what failed.
    refuses(await runLimited(8, argv, env), failures)
    const { code, stderr } = await runLimited(100_000, [...argv, '--resume'], env)
    assert.equal(code, 9, stderr)
    const lines = readFileSync(failures, 'utf8').trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { line: number }).line),
      Array.from({ length: 100 }, (_, n) => n + 2),
    )
  })
})

describe('A file that a message has, on a full disk', () => {
  it('is named', { skip }, async () => {
    const server = createServer((request, response) => {
      const isFile = request.method === 'GET' && request.url!.endsWith('/media')
      response.setHeader('Content-Type', isFile ? 'image/png' : 'application/json')
      response.end(isFile ? Buffer.alloc(10_000_000) : '{"state":"kept"}')
    })
    await listen(server)
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const env = { WCRM_URL: url, WCRM_API_KEY: 'wc_live_x' }
      const output = join(files.folder, 'photo.png')
      refuses(await runLimited(1, ['messages', 'media', '1', '--output', output], env), output)
      assert.ok(!existsSync(output))
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
