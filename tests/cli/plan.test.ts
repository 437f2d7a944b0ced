import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { doorsOf, everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { openTerminal } from '../terminal.ts'

const folder = mkdtempSync(join(tmpdir(), 'plan-'))
after(() => rmSync(folder, { recursive: true }))

everyDatabase('Plan and apply on the command line', (server) => {
  const open = async (name: string) => {
    const workspace = await makeWorkspace(server() satisfies TestServer)
    const { owner } = workspace
    const env = { WCRM_URL: server().url, WCRM_API_KEY: owner.key, XDG_CONFIG_HOME: '/nonexistent' }
    const as =
      (WCRM_API_KEY: string) =>
      (...argv: string[]) =>
        runCli(argv, { ...env, WCRM_API_KEY })
    const wcrm = as(owner.key)
    /** Returns the command line with another key of the same person. */
    const key = async (options: { agent?: boolean; test?: boolean }) =>
      as((await workspace.key(owner.staffId, options)).key)
    const ops = doorsOf(server().url, owner.key)[1]!
    const upsert = async (phone: string) =>
      (await ops.call('crm_upsert_contact', { phone, name: 'Ada' })).body.contact.id as string
    const file = join(folder, `${name}-${owner.keyId}-${server().url.slice(-5)}.plan`)
    const names = async (...ids: string[]) =>
      await Promise.all(
        ids.map(async (id) => (await ops.call('crm_get_contact', { contact_id: id })).body.name),
      )
    return { wcrm, env, key, ops, upsert, file, names }
  }

  it('writes what a dry run would do, shows it and does it, once', async () => {
    const { wcrm, upsert, file, names } = await open('once')
    const [first, second] = [await upsert('+15550155201'), await upsert('+15550155202')]
    for (const id of [first, second]) {
      const planned = await wcrm('contacts', 'update', id, '--name', 'Ada L', '--plan', file)
      assert.equal(planned.exit, 0, planned.stderr)
      assert.match(planned.stdout, new RegExp(`~ contact ${id}\\n    name: Ada → Ada L\\n`))
    }
    assert.deepEqual(await names(first, second), ['Ada', 'Ada'])
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const shown = await wcrm('diff', file)
    assert.equal(shown.exit, 0, shown.stderr)
    assert.equal(shown.stdout.match(/It would do the same now\./g)?.length, 2)
    const done = await wcrm('apply', file, '--json')
    assert.equal(done.exit, 0, done.stderr)
    assert.deepEqual(
      JSON.parse(done.stdout).steps.map((step: any) => [step.step, step.outcome, step.answer.name]),
      [
        [1, 'applied', 'Ada L'],
        [2, 'applied', 'Ada L'],
      ],
    )
    const again = await wcrm('apply', file, '--json')
    assert.deepEqual(
      [again.exit, JSON.parse(again.stdout).steps.map((step: any) => step.outcome)],
      [0, ['applied_before', 'applied_before']],
    )
  })

  it('stops at a step that has changed since, says what, and goes on there', async () => {
    const { wcrm, ops, upsert, file, names } = await open('changed')
    const [first, second] = [await upsert('+15550155201'), await upsert('+15550155202')]
    for (const id of [first, second]) await wcrm('contacts', 'update', id, '--name', 'Ada L', '--plan', file)
    await ops.call('crm_update_contact', { contact_id: second, name: 'Grace' })
    const shown = await wcrm('diff', file)
    assert.equal(shown.exit, 5)
    assert.match(shown.stdout, new RegExp(`Changed since:\\n  contact ${second} name: was Ada, is Grace\\n`))
    const stopped = await wcrm('apply', file)
    assert.deepEqual([stopped.exit, stopped.stdout], [5, ''])
    assert.match(stopped.stderr, /name: was Ada, is Grace\n/)
    assert.deepEqual(await names(first, second), ['Ada L', 'Grace'])
    await ops.call('crm_update_contact', { contact_id: second, name: 'Ada' })
    assert.equal((await wcrm('apply', file)).exit, 0)
    assert.deepEqual(await names(first, second), ['Ada L', 'Ada L'])
  })

  it('does nothing twice when it could not note that it was done, also without the key', async () => {
    const { wcrm, upsert, file, names } = await open('noted')
    const id = await upsert('+15550155201')
    await wcrm('contacts', 'update', id, '--name', 'Ada L', '--plan', file)
    await wcrm('groups', 'create', '--name', 'Planned', '--plan', file)
    const before = readFileSync(file, 'utf8')
    assert.equal((await wcrm('apply', file)).exit, 0)
    writeFileSync(file, before)
    assert.equal((await wcrm('apply', file)).exit, 0)
    const [line] = before.split('\n')
    writeFileSync(file, line!.replace(/"idempotency_key":"[^"]+"/, '"idempotency_key":"another-key"'))
    const late = await wcrm('apply', file, '--json')
    assert.deepEqual([late.exit, JSON.parse(late.stdout).steps[0].outcome], [0, 'already_so'])
    assert.deepEqual(await names(id), ['Ada L'])
    const { stdout } = await wcrm('groups', 'list', '--json')
    assert.equal(stdout.match(/"Planned"/g)?.length, 1)
  })

  it('asks for the verb of a step when it is applied', async () => {
    const { wcrm, upsert, file } = await open('verb')
    const id = await upsert('+15550155201')
    assert.equal((await wcrm('contacts', 'delete', id, '--plan', file)).exit, 0)
    const refused = await wcrm('apply', file)
    assert.deepEqual([refused.exit, refused.stdout], [6, ''])
    assert.match(refused.stderr, /add: --confirm delete/)
    const other = await wcrm('apply', file, '--confirm', 'archive', '--confirm', 'send')
    assert.deepEqual(
      [other.exit, (await wcrm('contacts', 'get', id)).exit],
      [6, 0],
      'not the verb of the step',
    )
    assert.equal((await wcrm('apply', file, '--confirm', 'delete')).exit, 0)
    assert.equal((await wcrm('contacts', 'get', id)).exit, 3)
  })

  it('asks on a terminal, where nothing but the verb is a yes', async () => {
    const { wcrm, env, upsert, file } = await open('prompt')
    const id = await upsert('+15550155201')
    assert.equal((await wcrm('contacts', 'delete', id, '--plan', file)).exit, 0)
    for (const [answer, exit, left] of [
      ['yes', 6, 0],
      ['delete', 0, 3],
    ] as const) {
      const terminal = openTerminal(['apply', file], { ...env, HOME: '/nonexistent' })
      try {
        assert.ok(await terminal.waitFor('Type delete to continue:', 60_000), terminal.printed())
        terminal.type(`${answer}\r`)
        assert.equal(await terminal.ended, exit, terminal.printed())
      } finally {
        await terminal.close()
      }
      assert.equal((await wcrm('contacts', 'get', id)).exit, left)
    }
  })

  it('stops at a step that waits for a person, and with a test key notes nothing as done', async () => {
    const { wcrm, upsert, file, names, key } = await open('waits')
    const [first, second] = [await upsert('+15550155201'), await upsert('+15550155202')]
    const asAgent = await key({ agent: true })
    assert.equal((await asAgent('contacts', 'delete', first, '--plan', file)).exit, 0)
    assert.equal((await asAgent('contacts', 'update', second, '--name', 'Ada L', '--plan', file)).exit, 0)
    const plan = readFileSync(file, 'utf8')
    const waiting = await asAgent('apply', file, '--json')
    assert.deepEqual(
      [waiting.exit, JSON.parse(waiting.stdout).steps.map((step: any) => step.outcome)],
      [10, ['waits_for_approval']],
    )
    assert.deepEqual([await names(first, second), readFileSync(file, 'utf8')], [['Ada', 'Ada'], plan])
    rmSync(file)
    await wcrm('contacts', 'update', second, '--name', 'Ada L', '--plan', file)
    const rehearsed = await (await key({ test: true }))('apply', file, '--json')
    assert.equal(JSON.parse(rehearsed.stdout).steps[0].outcome, 'dry_run', rehearsed.stderr)
    assert.deepEqual(await names(second), ['Ada'])
    assert.equal((await wcrm('apply', file)).exit, 0)
    assert.deepEqual(await names(second), ['Ada L'])
  })

  it('prints what is shown once, and with --json also what was done before a step that is refused', async () => {
    const { wcrm, upsert, ops, file } = await open('shown')
    const hook = ['webhooks', 'create', '--url', 'https://hooks.example.com/in', '--event-types', '*']
    await wcrm(...hook, '--plan', file)
    const plain = await wcrm('apply', file)
    assert.match(plain.stdout, /"whsec_[^"*]+"/, plain.stderr)
    rmSync(file)
    const id = await upsert('+15550155201')
    await wcrm(...hook, '--plan', file)
    await wcrm('contacts', 'update', id, '--name', 'Ada L', '--plan', file)
    await ops.call('crm_update_contact', { contact_id: id, name: 'Grace' })
    const stopped = await wcrm('apply', file, '--json')
    assert.equal(stopped.exit, 5)
    assert.match(JSON.parse(stopped.stdout).steps[0].answer.signing_secret, /^whsec_/)
  })

  it('refuses a file that is no plan, and leaves it and its plan as they were on errors', async () => {
    const { wcrm, file } = await open('wrong')
    assert.equal((await wcrm('apply', file)).exit, 2)
    assert.equal((await wcrm('contacts', 'update', '999999', '--name', 'X', '--plan', file)).exit, 3)
    assert.equal(existsSync(file), false)
    writeFileSync(file, 'notes of mine\n')
    chmodSync(file, 0o664)
    assert.equal((await wcrm('groups', 'create', '--name', 'A', '--plan', file)).exit, 2)
    assert.equal((await wcrm('diff', file)).exit, 2)
    assert.equal(readFileSync(file, 'utf8'), 'notes of mine\n')
    assert.equal(statSync(file).mode & 0o777, 0o664)
    rmSync(file)
    await wcrm('groups', 'create', '--name', 'A', '--plan', file)
    writeFileSync(file, readFileSync(file, 'utf8').replace(server().url, 'https://elsewhere.example'))
    const elsewhere = await wcrm('apply', file)
    assert.equal(elsewhere.exit, 2)
    assert.match(elsewhere.stderr, /made for https:\/\/elsewhere\.example/)
  })
})
