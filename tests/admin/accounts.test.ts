import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { runCommandLine } from '../../cli/main.ts'
import { unsealAccount } from '../../server/provider/account-secrets.ts'
import { createSealer } from '../../server/sealer.ts'
import { createSecretRing } from '../../server/secret.ts'
import { listSealedAccounts } from '../../storage/channels/provider-accounts.ts'
import { collectOutput } from '../cli/output-streams.ts'
import { useAdminDatabases } from './admin-commands.ts'

const { newFolder, open } = useAdminDatabases()
const SECRET = 'a secret of at least sixteen'

/** Runs `wcrm admin` with a secret in the environment. `stdin` is all of its input. */
const run = async (argv: string[], stdin = '') => {
  const [stdout, stderr] = [collectOutput(), collectOutput()]
  const input = new PassThrough()
  input.end(stdin)
  const exit = await runCommandLine(['admin', ...argv, '--json'], {
    stdin: input,
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: { WCRM_SECRET: SECRET },
  })
  const text = stdout.text()
  return {
    exit,
    text: text + stderr.text(),
    output: text === '' ? undefined : JSON.parse(text),
    problem: text === '' ? JSON.parse(stderr.text()) : undefined,
  }
}

describe('wcrm admin accounts', () => {
  const setUp = async (t: TestContext) => {
    const folder = newFolder()
    // Open as in a running server: each command would take a second to open it.
    const storage = await open(folder)
    t.after(() => storage.close())
    const files = mkdtempSync(join(tmpdir(), 'wcrm-secrets-'))
    process.once('exit', () => rmSync(files, { recursive: true, force: true }))
    const file = (name: string, text: string): string => {
      writeFileSync(join(files, name), text)
      return `@${join(files, name)}`
    }
    await run(['workspaces', 'create', '--name', 'One', '--data', folder])
    const accounts = (verb: string, ...words: string[]) => run(['accounts', verb, ...words, '--data', folder])
    const secrets = async () => {
      const rows = await listSealedAccounts(storage.db, ['100', '200'])
      const sealer = createSealer(createSecretRing([SECRET]), 'provider accounts')
      return { rows, opened: rows.map((row) => unsealAccount(sealer, row)) }
    }
    return { folder, storage, file, accounts, secrets }
  }

  it('secrets come from a file or standard input, are stored sealed and shown nowhere', async (t) => {
    const { accounts, file, secrets } = await setUp(t)
    const created = await accounts(
      'create',
      '100',
      '--name',
      'Shop',
      '--token',
      file('token', 'EAAGone\n'),
      '--app-secret',
      file('secret', 'app-secret'),
      '--app-id',
      '42',
    )
    assert.equal(created.exit, 0, created.text)
    assert.deepEqual(
      [
        created.output.account_id,
        created.output.has_token,
        created.output.has_app_secret,
        created.output.has_verify_token,
      ],
      ['100', true, true, false],
    )
    const piped = await run(
      ['accounts', 'update', '100', '--verify-token', '-', '--data', (await setUp(t)).folder],
      'x',
    )
    assert.equal(piped.exit, 3, 'the account of another database')
    const { rows, opened } = await secrets()
    assert.deepEqual(opened, [{ token: 'EAAGone', appSecret: 'app-secret', verifyToken: null, appId: '42' }])
    const listed = await accounts('list')
    for (const text of [created.text, listed.text, JSON.stringify(rows)])
      assert.doesNotMatch(text, /EAAGone|app-secret"|"app-secret/)
    assert.deepEqual(
      listed.output.data.map((row: { account_id: string }) => row.account_id),
      ['100'],
    )
    assert.equal(
      (await accounts('update', '100', '--app-secret', 'none', '--token', file('token', 'EAAGtwo'))).exit,
      0,
    )
    assert.deepEqual((await secrets()).opened, [
      { token: 'EAAGtwo', appSecret: null, verifyToken: null, appId: '42' },
    ])
    assert.equal((await accounts('remove', '100')).exit, 0)
    assert.deepEqual((await secrets()).rows, [])
    assert.equal((await accounts('remove', '100')).exit, 3)
  })

  it('a secret on the command line is refused, and what is no secret too', async (t) => {
    const { accounts, file } = await setUp(t)
    const refused = await accounts('create', '100', '--token', 'EAAGplain')
    assert.equal(refused.exit, 2)
    assert.match(refused.problem.detail, /not read from the command line/)
    assert.doesNotMatch(refused.text, /EAAGplain/)
    for (const text of ['', 'two words', 'x'.repeat(5000)])
      assert.equal((await accounts('create', '100', '--token', file('bad', text))).exit, 2)
    assert.equal((await accounts('create', 'workspace1', '--token', file('token', 'x'))).exit, 2)
    assert.equal((await accounts('create', '../100', '--token', file('token', 'x'))).exit, 2)
    assert.equal((await accounts('create', '100', '--token', file('token', 'x'))).exit, 0)
    const again = await accounts('create', '100', '--token', file('token', 'x'))
    assert.match(again.problem.detail, /has credentials of the account 100 already/)
    assert.equal((await accounts('update', '100')).exit, 2)
  })

  it('an account belongs to one workspace, whether by its channels or its credentials', async (t) => {
    const { folder, accounts, file } = await setUp(t)
    await accounts('create', '100', '--token', file('token', 'x'))
    const second = (await run(['workspaces', 'create', '--name', 'Two', '--data', folder])).output
      .id as string
    const inSecond = (...words: string[]) => run([...words, '--data', folder, '--workspace', second])
    const taken = await inSecond('accounts', 'create', '100', '--token', file('token', 'y'))
    assert.equal(taken.exit, 2)
    assert.match(taken.problem.detail, /belongs to workspace/)
    assert.match(taken.problem.errors[0].fix, /wcrm admin accounts remove 100 --workspace/)
    const channel = ['channels', 'create', '--type', 'chatapp', '--name', 'N', '--identifier', '+15550100001']
    assert.equal((await inSecond(...channel, '--account', '100:Stolen')).exit, 2)
    assert.equal((await inSecond(...channel, '--account', '200:Ours')).exit, 0)
    const first = await run([
      'accounts',
      'create',
      '200',
      '--token',
      file('token', 'z'),
      '--data',
      folder,
      '--workspace',
      '1',
    ])
    assert.equal(first.exit, 2)
    assert.match(first.problem.detail, /belongs to channel/)
  })

  it('a new token reconnects the channels that the old one had disconnected', async (t) => {
    const { folder, storage, accounts, file } = await setUp(t)
    const { output: channel } = await run([
      'channels',
      'create',
      '--type',
      'chatapp',
      '--name',
      'N',
      '--identifier',
      '+15550100001',
      '--account',
      '100:Ours',
      '--data',
      folder,
    ])
    await storage.db
      .insertInto('channel_health')
      .values({
        workspace_id: '1',
        channel_id: channel.id,
        status: 'disconnected',
        reason: 'token_revoked',
        previous_status: 'connected',
      })
      .execute()
    await storage.db.updateTable('channels').set({ status: 'disconnected' }).execute()
    await accounts('create', '100', '--token', file('token', 'x'))
    const [row] = (await run(['channels', 'list', '--data', folder])).output.data
    assert.equal(row.status, 'connected')
  })
})
