import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { PassThrough } from 'node:stream'
import { defaultPolicy } from '../../catalog/policy.ts'
import { text } from 'node:stream/consumers'
import type { ImportState } from '../../cli/import/state.ts'
import { runCommandLine } from '../../cli/main.ts'
import { callAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { countRows, useImportFiles } from './import-files.ts'
import { collectOutput } from './output-streams.ts'

const files = useImportFiles()

everyDatabase('import: resume', (server, database) => {
  it('a key without the scope stops the import with its exit code', async () => {
    const { workspace } = await files.createScene(server())
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    const file = files.writeRows('phone\n+15550100042\n')
    const { exit, stdout, stderr } = await runCli(
      ['contacts', 'import', file],
      files.envFor(server(), reader.key),
    )
    assert.deepEqual([exit, stdout], [4, ''])
    assert.match(
      stderr,
      /crm:write[^]*Stopped after 0 of 1 rows\. To continue, run the same command with --resume/,
    )
    assert.equal(
      (
        JSON.parse(
          (await files.runImportAs(server(), reader.key)([file, '--create-groups'])).stderr.replace(
            /^An import.*\n/,
            '',
          ),
        ) as { code: string }
      ).code,
      'insufficient_scope',
    )
    assert.equal(
      (await files.runImportAs(server(), 'wc_live_nobody')([files.writeRows('phone\n+15550100042\n')])).exit,
      4,
    )
  })

  it('a killed import resumes, and every row is imported once', async () => {
    const { workspace } = await files.createScene(server())
    const rows = 6_000
    const isInvalid = (n: number) => n % 600 === 599
    const csvRows = Array.from(
      { length: rows },
      (_, n) => `${isInvalid(n) ? '0' : '+1555'}${1_000_000 + n},N${n},t${n % 7}\n`,
    )
    const file = files.writeRows(`phone,name,tags\n${csvRows.join('')}`)
    const failures = join(files.folder, `killed-${database}.ndjson`)
    const env = {
      ...files.envFor(server(), workspace.owner.key),
      XDG_STATE_HOME: join(files.folder, `state-${database}`),
    }
    const stateFolder = join(env.XDG_STATE_HOME, 'wcrm', 'import')
    mkdirSync(stateFolder, { recursive: true })
    const readState = (): ImportState | undefined =>
      readdirSync(stateFolder)
        .filter((name) => name.endsWith('.json'))
        .map((name) => JSON.parse(readFileSync(join(stateFolder, name), 'utf8')) as ImportState)[0]
    const argv = ['contacts', 'import', file, '--failures', failures]
    for (const minRows of [1000, 2500]) {
      const child = spawn(process.execPath, ['bin/wcrm.js', ...argv, '--resume'], { env, stdio: 'ignore' })
      const exited = once(child, 'exit') as Promise<[number | null, string | null]>
      const abort = new AbortController()
      void exited.then(() => abort.abort())
      await (async () => {
        for await (const _ of watch(stateFolder, { signal: abort.signal }))
          if ((readState()?.totals.rows ?? 0) >= minRows) child.kill('SIGKILL')
      })().catch(() => {})
      assert.equal((await exited)[1], 'SIGKILL')
      assert.ok(readState()!.totals.rows < rows)
    }
    const stopped = readState()!
    assert.ok(stopped.totals.rows >= 2500)
    assert.equal((await runCli(['contacts', 'import', file, '--resume'], env)).exit, 2, 'other flags')
    const { exit, stdout, stderr } = await runCli(
      [...argv, '--resume', '--json=rows,created,updated,unchanged,failed'],
      env,
    )
    assert.deepEqual(
      [exit, JSON.parse(stdout)],
      [9, { rows, created: rows - 10, updated: 0, unchanged: 0, failed: 10 }],
      stderr,
    )
    assert.equal(readState(), undefined)
    assert.deepEqual(
      [
        await countRows(server(), 'contacts', workspace),
        await countRows(server(), 'events', workspace, 'contact.created/1'),
      ],
      [rows - 10, rows - 10],
    )
    const lines = readFileSync(failures, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { line: number }).line)
    assert.deepEqual(
      lines,
      Array.from({ length: 10 }, (_, n) => (n + 1) * 600 + 1),
    )
  })

  it('an import that Ctrl-C or SIGTERM ends says how to continue, and resumes', async () => {
    const { workspace } = await files.createScene(server())
    const rows = 6_000
    const file = files.writeRows(
      `phone\n${Array.from({ length: rows }, (_, n) => `+1555${1_000_000 + n}\n`).join('')}`,
    )
    const env = {
      ...files.envFor(server(), workspace.owner.key),
      XDG_STATE_HOME: join(files.folder, `interrupted-${database}`),
    }
    const stateFolder = join(env.XDG_STATE_HOME, 'wcrm', 'import')
    mkdirSync(stateFolder, { recursive: true })
    const readDone = (): number =>
      readdirSync(stateFolder)
        .filter((name) => name.endsWith('.json'))
        .map((name) => JSON.parse(readFileSync(join(stateFolder, name), 'utf8')) as ImportState)[0]?.totals
        .rows ?? 0
    const argv = ['contacts', 'import', file, '--resume']
    for (const [signal, exit, minRows] of [
      ['SIGINT', 130, 1000],
      ['SIGTERM', 143, 2500],
    ] as const) {
      const child = spawn(process.execPath, ['bin/wcrm.js', ...argv], {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const [exited, printed] = [once(child, 'close') as Promise<[number | null]>, text(child.stderr)]
      const abort = new AbortController()
      void exited.then(() => abort.abort())
      let sent = false
      await (async () => {
        for await (const _ of watch(stateFolder, { signal: abort.signal }))
          if (!sent && readDone() >= minRows) sent = child.kill(signal)
      })().catch(() => {})
      assert.equal((await exited)[0], exit)
      assert.ok(
        (await printed).includes(`Stopped after ${readDone()} of ${rows} rows. To continue, run the same`),
      )
      assert.ok(readDone() < rows)
    }
    const { exit, stdout } = await runCli([...argv, '--json=rows,created,unchanged'], env)
    assert.deepEqual([exit, JSON.parse(stdout)], [0, { rows, created: rows, unchanged: 0 }])
    assert.equal(await countRows(server(), 'contacts', workspace), rows)
  })

  it('a changed file is not resumed, and an interrupted import is reported', async () => {
    const { workspace, run } = await files.createScene(server())
    const file = files.writeRows('phone\n+15550100042\n')
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    assert.equal((await files.runImportAs(server(), reader.key)([file])).exit, 4)
    writeFileSync(file, 'phone\n+15550100043\n')
    const changed = await run([file, '--resume'])
    assert.equal(changed.exit, 2)
    assert.match(changed.stderr, /has changed/)
    const again = await run([file])
    assert.match(again.stderr, /interrupted after 0 rows/)
    assert.deepEqual([again.exit, again.summary.created], [0, 1])
    assert.equal((await run([file, '--resume'])).summary.unchanged, 1)
  })

  it('what a test key did is no progress of the import', async () => {
    const { workspace, run } = await files.createScene(server())
    const test = await workspace.key(workspace.owner.staffId, { test: true })
    const rehearse = files.runImportAs(server(), test.key)
    const csvRows = Array.from({ length: 600 }, (_, n) => `+1555${1_000_000 + n}\n`)
    const file = files.writeRows(`phone\n${csvRows.join('')}`)
    /** Imports with a key that is refused from the second batch on. */
    const importFirstBatch = async (key: string): Promise<number> => {
      let batches = 0
      const [stdin, stdout, stderr] = [new PassThrough(), collectOutput(), collectOutput()]
      stdin.end()
      return await runCommandLine(['contacts', 'import', file], {
        stdin,
        stdout: stdout.stream,
        stderr: stderr.stream,
        env: files.envFor(server(), key),
        fetch: async (url, init) => {
          if (!String(url).endsWith('/crm_import_contacts') || batches++ === 0) return await fetch(url, init)
          const headers = new Headers(init?.headers)
          headers.set('Authorization', 'Bearer wc_live_nobody')
          return await fetch(url, { ...init, headers })
        },
      })
    }
    assert.equal(await importFirstBatch(test.key), 4)
    assert.equal((await run([file, '--resume'])).exit, 0)
    assert.equal(await countRows(server(), 'contacts', workspace), 600)
    // Nor does a rehearsal end an import that was interrupted.
    assert.equal(await importFirstBatch(workspace.owner.key), 4)
    const { exit, summary } = await rehearse([file])
    assert.deepEqual([exit, summary.unchanged, summary.dry_run], [0, 600, true])
    assert.equal((await rehearse([file, '--resume'])).exit, 2)
    assert.match((await run([file])).stderr, /interrupted after 500 rows/)
  })

  it('rows on which a person decides are imported once they did', async () => {
    const { workspace, call } = await files.createScene(server())
    const policy = { ...defaultPolicy, operations: { crm_import_contacts: 'ask' as const } }
    const agent = await workspace.key(workspace.owner.staffId, { agent: true, phones: true, policy })
    const file = files.writeRows('phone\n+15550100042\n+15550100043\n')
    const importAs = (...flags: string[]) =>
      runCli(['contacts', 'import', file, '--json', ...flags], files.envFor(server(), agent.key))
    const asked = await importAs()
    const { id } = (JSON.parse(asked.stdout) as { approval: { id: string } }).approval
    assert.equal(asked.exit, 10)
    assert.match(asked.stderr, /--resume/)
    const again = await importAs('--resume')
    assert.deepEqual([again.exit, JSON.parse(again.stdout).approval.id], [10, id])
    assert.equal(await countRows(server(), 'contacts', workspace), 0)
    await call('approvals_approve', { approval_id: id })
    await server().app.jobs.job('approvals').runOnce()
    const done = await importAs('--resume')
    assert.deepEqual([done.exit, JSON.parse(done.stdout).created], [0, 2], done.stderr)
    assert.equal(await countRows(server(), 'contacts', workspace), 2)
  })
})

everyDatabase(
  'import: rate limit',
  (server) => {
    it('an import waits for the rate limit and continues', async () => {
      const workspace = await makeWorkspace(server())
      const call = callAs(server(), workspace.owner.key)
      // The limit is used up right before the first batch is sent: a token is added every three seconds,
      // and a slow machine could take longer from here to there.
      const exhaustLimit = async (): Promise<void> => {
        while ((await call('crm_create_group', { name: 'A' })).status !== 429);
      }
      let batches = 0
      const [stdin, stdout, stderr] = [new PassThrough(), collectOutput(), collectOutput()]
      stdin.end(`phone\n${Array.from({ length: 600 }, (_, n) => `+1555${1_000_000 + n}\n`).join('')}`)
      const exit = await runCommandLine(['contacts', 'import', '-', '--json=created'], {
        stdin,
        stdout: stdout.stream,
        stderr: stderr.stream,
        env: files.envFor(server(), workspace.owner.key),
        fetch: async (url, init) => {
          if (String(url).endsWith('/crm_import_contacts') && batches++ === 0) await exhaustLimit()
          return await fetch(url, init)
        },
      })
      assert.deepEqual([exit, JSON.parse(stdout.text())], [0, { created: 600 }], stderr.text())
      assert.ok(batches > 2, 'a batch was sent again')
      assert.match(stderr.text(), /Rate limited: continuing in \d+ s\./)
    })
  },
  { limitWrite: 20 },
)
