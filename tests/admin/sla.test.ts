import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { makeWorkspace, startServer } from '../servers.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { doAs } from '../calls.ts'
import { runCli } from '../doors.ts'

const home = mkdtempSync(join(tmpdir(), 'wcrm-sla-'))
after(() => rmSync(home, { recursive: true, force: true }))

it('wcrm admin sla, beside a running server', async () => {
  const server = await startServer('embedded')
  try {
    const workspace = await makeWorkspace(server)
    const at = ['--data', (server.location as { dataDir: string }).dataDir, '--json']
    const done = async (...words: string[]) => {
      const { exit, stdout, stderr } = await runCli(['admin', 'sla', ...words, ...at], {})
      assert.equal(exit, 0, stderr)
      return JSON.parse(stdout)
    }
    const refused = async (exit: number, told: RegExp, ...words: string[]) => {
      const reply = await runCli(['admin', 'sla', ...words, ...at], {})
      assert.deepEqual([reply.exit, reply.stdout], [exit, ''], reply.stderr)
      assert.match(JSON.parse(reply.stderr).detail, told)
    }

    const made = await done(
      'create',
      '--name',
      'Standard',
      '--first-response',
      '30m',
      '--resolution',
      '1d 8h',
    )
    assert.deepEqual(
      { ...made, created_at: '' },
      {
        id: made.id,
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
    const file = join(home, 'hours.json')
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
    const channel = (await doAs(server, workspace.owner.key)('workspace_channels')).data[0].id
    const changed = await done(
      'update',
      made.id,
      '--hours',
      `@${file}`,
      '--channels',
      channel,
      '--next-response',
      '90s',
      '--first-response',
      'none',
      '--disabled',
    )
    assert.deepEqual(changed, {
      ...made,
      hours,
      channel_ids: [channel],
      next_response_seconds: 90,
      first_response_seconds: null,
      enabled: false,
    })
    assert.deepEqual(await done('list'), { data: [changed] })
    assert.deepEqual(await done('update', made.id, '--hours', 'none', '--channels', 'all', '--enabled'), {
      ...changed,
      hours: null,
      channel_ids: null,
      enabled: true,
    })

    const { id } = await plantConversation(server, workspace.id)
    assert.equal(
      (await doAs(server, workspace.owner.key)('inbox_get_conversation', { conversation_id: id })).sla.policy,
      'Standard',
    )

    await refused(2, /needs a target/, 'create', '--name', 'Nothing')
    await refused(2, /--name/, 'create', '--resolution', '8h')
    for (const value of ['soon', '0s', '30', '400d', ''])
      await refused(2, /--resolution must be a duration/, 'create', '--name', 'X', '--resolution', value)
    await refused(
      2,
      /--hours is not a JSON object/,
      'create',
      '--name',
      'X',
      '--resolution',
      '8h',
      '--hours',
      '9-18',
    )
    await refused(
      2,
      /--hours: days\.mon\.0 must end after it begins/,
      'create',
      '--name',
      'X',
      '--resolution',
      '8h',
      '--hours',
      '{"days":{"mon":[["22:00","06:00"]]}}',
    )
    await refused(
      2,
      /--hours: timezone must be an IANA time zone/,
      'create',
      '--name',
      'X',
      '--resolution',
      '8h',
      '--hours',
      '{"timezone":"Mars","days":{"mon":[["09:00","10:00"]]}}',
    )
    await refused(2, /Cannot read/, 'create', '--name', 'X', '--resolution', '8h', '--hours', '@nowhere.json')
    await refused(3, /no channel 999/, 'create', '--name', 'X', '--resolution', '8h', '--channels', '999')
    await refused(2, /names no channel/, 'create', '--name', 'X', '--resolution', '8h', '--channels', '')
    await refused(2, /nothing to change/, 'update', made.id)
    for (const verb of ['update', 'delete'])
      await refused(3, /no service level 999/, verb, '999', ...(verb === 'update' ? ['--name', 'X'] : []))

    const other = await makeWorkspace(server)
    const theirs = ['--workspace', other.id]
    assert.deepEqual(await done('list', ...theirs), { data: [] })
    await refused(3, /no service level/, 'update', made.id, '--name', 'Stolen', ...theirs)
    await refused(3, /no service level/, 'delete', made.id, ...theirs)
    assert.deepEqual(await done('delete', made.id, '--workspace', workspace.id), {
      id: made.id,
      deleted: true,
    })
    assert.deepEqual(await done('list', '--workspace', workspace.id), { data: [] })
  } finally {
    await server.close()
  }
})
