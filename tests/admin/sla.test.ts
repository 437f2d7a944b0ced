import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { doAs } from '../calls.ts'
import { runCli } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, startServer } from '../servers.ts'

describe('wcrm admin sla, beside a running server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-sla-'))
  let server: Awaited<ReturnType<typeof startServer>>
  let workspace: Awaited<ReturnType<typeof makeWorkspace>>

  before(async () => {
    server = await startServer('embedded')
    workspace = await makeWorkspace(server)
  })
  after(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const runSla = (argv: readonly string[]) => {
    const { dataDir } = server.location as { dataDir: string }
    return runCli(['admin', 'sla', ...argv, '--data', dataDir, '--json'], {})
  }
  /** Runs a command that must succeed. Returns the JSON that it printed. */
  const succeed = async (...argv: string[]) => {
    const { exit, stdout, stderr } = await runSla(argv)
    assert.equal(exit, 0, stderr)
    return JSON.parse(stdout)
  }
  /** Runs a command that must fail with this exit code and detail. */
  const fail = async (expectedExit: number, detail: RegExp, ...argv: string[]) => {
    const { exit, stdout, stderr } = await runSla(argv)
    assert.deepEqual([exit, stdout], [expectedExit, ''], stderr)
    assert.match(JSON.parse(stderr).detail, detail)
  }
  const createPolicy = (): Promise<any> =>
    succeed('create', '--name', 'Standard', '--first-response', '30m', '--resolution', '1d 8h')

  it('creates, updates and lists policies, which apply to new conversations', async () => {
    const policy = await createPolicy()
    assert.deepEqual(
      { ...policy, created_at: '' },
      {
        id: policy.id,
        name: 'Standard',
        enabled: true,
        channel_ids: null,
        first_response_seconds: 1800,
        next_response_seconds: null,
        resolution_seconds: 115_200,
        hours: null,
        created_at: '',
      },
    )
    const file = join(folder, 'hours.json')
    const hours = {
      timezone: 'Europe/Berlin',
      days: {
        mon: [
          ['09:00', '12:30'],
          ['13:30', '24:00'],
        ],
      },
      holidays: ['2026-12-25'],
    }
    writeFileSync(file, JSON.stringify(hours))
    const call = doAs(server, workspace.owner.key)
    const channel = (await call('workspace_channels')).data[0].id
    const changes = ['--hours', `@${file}`, '--channels', channel, '--next-response', '90s']
    const changed = await succeed('update', policy.id, ...changes, '--first-response', 'none', '--disabled')
    assert.deepEqual(changed, {
      ...policy,
      hours,
      channel_ids: [channel],
      next_response_seconds: 90,
      first_response_seconds: null,
      enabled: false,
    })
    assert.deepEqual(await succeed('list'), { data: [changed] })
    assert.deepEqual(
      await succeed('update', policy.id, '--hours', 'none', '--channels', 'all', '--enabled'),
      { ...changed, hours: null, channel_ids: null, enabled: true },
    )
    const { id } = await plantConversation(server, workspace.id)
    const conversation = await call('inbox_get_conversation', { conversation_id: id })
    assert.equal(conversation.sla.policy, 'Standard')
    await fail(2, /Nothing to change/, 'update', policy.id)
    await succeed('delete', policy.id)
  })

  it('refuses invalid policies and unknown ids', async () => {
    const create = ['create', '--name', 'X', '--resolution']
    await fail(2, /needs a target/, 'create', '--name', 'Nothing')
    await fail(2, /--name/, 'create', '--resolution', '8h')
    for (const value of ['soon', '0s', '30', '400d', ''])
      await fail(2, /--resolution must be a duration/, ...create, value)
    for (const [detail, hours] of [
      [/--hours is not a JSON object/, '9-18'],
      [/--hours: days\.mon\.0 must end after it begins/, '{"days":{"mon":[["22:00","06:00"]]}}'],
      [
        /--hours: timezone must be an IANA time zone/,
        '{"timezone":"Mars","days":{"mon":[["09:00","10:00"]]}}',
      ],
      [/--hours: days is required\./, '{"mon":[["09:00","17:00"]]}'],
      [/--hours: days\.monday is not a field here\./, '{"days":{"monday":[["09:00","17:00"]]}}'],
      [/Cannot read/, '@nowhere.json'],
    ] as const)
      await fail(2, detail, ...create, '8h', '--hours', hours)
    await fail(3, /no channel 999/, ...create, '8h', '--channels', '999')
    await fail(2, /names no channel/, ...create, '8h', '--channels', '')
    await fail(3, /no service level 999/, 'update', '999', '--name', 'X')
    await fail(3, /no service level 999/, 'delete', '999')
  })

  it('policies belong to one workspace', async () => {
    const policy = await createPolicy()
    const other = ['--workspace', (await makeWorkspace(server)).id]
    assert.deepEqual(await succeed('list', ...other), { data: [] })
    await fail(3, /no service level/, 'update', policy.id, '--name', 'Stolen', ...other)
    await fail(3, /no service level/, 'delete', policy.id, ...other)
    assert.deepEqual(await succeed('delete', policy.id, '--workspace', workspace.id), {
      id: policy.id,
      deleted: true,
    })
    assert.deepEqual(await succeed('list', '--workspace', workspace.id), { data: [] })
  })
})
