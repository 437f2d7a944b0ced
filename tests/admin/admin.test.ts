import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { renderAdminManPage } from '../../scripts/man-admin.ts'
import { serveStorage } from '../servers.ts'
import { fail, runAdmin, succeed, useAdminDatabases } from './admin-commands.ts'
import { measureStaleness } from '../staleness.ts'

const databases = useAdminDatabases()

describe('wcrm admin', () => {
  const folder = databases.newFolder()
  const dataFlags = ['--data', folder]
  // Keeps the database open, as a running server does: opening it for each command would take a second.
  before(async () => {
    await databases.open(folder)
  })

  it('init makes the first workspace, its owner and a key, and never a second one', async () => {
    const target = databases.newFolder()
    const storage = await databases.open(target)
    const words = ['init', '--workspace', 'Acme', '--owner', 'Mara', '--data', target]
    const made = await succeed(...words, '--timezone', 'europe/berlin')
    assert.deepEqual(made, {
      workspace_id: made.workspace_id,
      workspace: 'Acme',
      timezone: 'Europe/Berlin',
      staff_id: made.staff_id,
      owner: 'Mara',
      key_id: made.key_id,
      key: made.key,
    })
    const server = await serveStorage(storage, 'embedded')
    try {
      const response = await fetch(`${server.url}/v1/me`, {
        headers: { Authorization: `Bearer ${made.key}` },
      })
      const me: any = await response.json()
      assert.equal(me.staff.role, 'owner')
      assert.equal(me.workspace.name, 'Acme')
    } finally {
      await server.close()
    }
    await fail(5, /has a workspace already/, ...words)
    await fail(2, /--timezone does not accept/, ...words, '--timezone', 'Mars')
    const { exit, err } = await runAdmin('init', '--workspace', 'Acme', '--data', target)
    assert.equal(exit, 2)
    assert.match(err, /--owner/)
  })

  it('creates and updates workspaces, teams, staff and channels', async () => {
    await fail(3, /no workspace yet/, 'staff', 'list', ...dataFlags)
    const workspace = await succeed(
      'workspaces',
      'create',
      '--name',
      'Acme',
      '--timezone',
      'europe/berlin',
      '--contact-limit',
      '10',
      ...dataFlags,
    )
    assert.deepEqual(
      { ...workspace, created_at: '' },
      {
        id: '1',
        name: 'Acme',
        timezone: 'Europe/Berlin',
        features: ['api_access'],
        contact_limit: 10,
        template_limit: null,
        created_at: '',
      },
    )
    assert.deepEqual(
      await succeed('workspaces', 'update', '--features', '', '--contact-limit', 'none', ...dataFlags),
      {
        ...workspace,
        features: [],
        contact_limit: null,
      },
    )
    assert.deepEqual(await succeed('teams', 'create', '--name', 'Support', ...dataFlags), {
      id: '1',
      name: 'Support',
      staff_ids: [],
    })
    const channel = await succeed(
      'channels',
      'create',
      '--type',
      'chatapp',
      '--name',
      'Line',
      '--identifier',
      '+1 555 010 0001',
      '--account',
      '77:Main',
      '--default',
      ...dataFlags,
    )
    assert.deepEqual(
      [channel.identifier, channel.account_id, channel.account_name, channel.is_default, channel.status],
      ['15550100001', '77', 'Main', true, 'connected'],
    )
    const webChannel = await succeed(
      'channels',
      'create',
      '--type',
      'web',
      '--name',
      'Site',
      '--identifier',
      'acme.example',
      '--status',
      'unknown',
      '--default',
      ...dataFlags,
    )
    assert.deepEqual(
      (await succeed('channels', 'list', ...dataFlags)).data.map(
        (row: { is_default: boolean }) => row.is_default,
      ),
      [false, true],
    )
    const staff = await succeed(
      'staff',
      'create',
      '--name',
      'Zoë',
      '--role',
      'agent',
      '--hide-phone-numbers',
      '--teams',
      '1',
      '--channels',
      `${channel.id},${webChannel.id}`,
      ...dataFlags,
    )
    assert.deepEqual(staff, {
      id: '1',
      name: 'Zoë',
      role: 'agent',
      enabled: true,
      hide_phone_numbers: true,
      reports: false,
      channel_ids: ['1', '2'],
      team_ids: ['1'],
    })
    assert.deepEqual((await succeed('teams', 'list', ...dataFlags)).data, [
      { id: '1', name: 'Support', staff_ids: ['1'] },
    ])
    assert.deepEqual(
      await succeed(
        'staff',
        'update',
        '1',
        '--no-hide-phone-numbers',
        '--disabled',
        '--channels',
        'all',
        '--teams',
        '',
        ...dataFlags,
      ),
      { ...staff, enabled: false, hide_phone_numbers: false, channel_ids: null, team_ids: [] },
    )
  })

  it('creates API keys and shows them once', async () => {
    const created = await succeed(
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'crm:write,mcp:read',
      '--test',
      '--agent',
      '--expires',
      '2027-01-31',
      ...dataFlags,
    )
    assert.match(created.key, /^wc_test_[0-9A-Za-z]{40}$/)
    assert.deepEqual(
      [created.scopes, created.agent, created.phones, created.expires_at],
      [['mcp:read', 'crm:write'], true, false, '2027-01-31T23:00:00.000Z'],
    )
    const { key: _, ...listed } = created
    assert.deepEqual((await succeed('keys', 'list', ...dataFlags)).data, [listed])
    const all = ['keys', 'create', '--staff', '1', '--scopes', 'all', ...dataFlags]
    const persons = await succeed(...all)
    assert.deepEqual([persons.scopes.length, persons.phones], [6, true])
    assert.equal((await succeed(...all, '--agent', '--phones')).phones, true)
    await fail(2, /--phones is for keys of AI agents/, ...all, '--phones')
  })

  it('makes login codes of staff', async () => {
    const make = ['login-code', '--staff', '1', ...dataFlags]
    await fail(3, /no enabled staff member 1/, ...make)
    await succeed('staff', 'update', '1', '--enabled', ...dataFlags)
    const { code, staff_id: staffId } = await succeed(...make)
    assert.match(code, /^[2-9A-Z]{4}(-[2-9A-Z]{4}){2}$/)
    assert.equal(staffId, '1')
    await succeed('staff', 'update', '1', '--disabled', ...dataFlags)
  })

  it('a usage error names the flag', async () => {
    await fail(
      2,
      /--timezone does not accept "Mars\/Olympus"/,
      'workspaces',
      'create',
      '--name',
      'X',
      '--timezone',
      'Mars/Olympus',
      ...dataFlags,
    )
    await fail(
      2,
      /--role does not accept "boss"/,
      'staff',
      'create',
      '--name',
      'X',
      '--role',
      'boss',
      ...dataFlags,
    )
    await fail(
      2,
      /--scopes does not accept "crm:read"/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'crm:read',
      ...dataFlags,
    )
    await fail(
      2,
      /--expires must be a date/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'all',
      '--expires',
      'tomorrow',
      ...dataFlags,
    )
    await fail(
      2,
      /--staff must be an id/,
      'keys',
      'create',
      '--staff',
      'Zoë',
      '--scopes',
      'all',
      ...dataFlags,
    )
    await fail(2, /required option '--scopes/, 'keys', 'create', '--staff', '1', ...dataFlags)
    await fail(2, /unknown option '--colour'/, 'keys', 'list', '--colour', ...dataFlags)
    await fail(2, /Nothing to change/, 'staff', 'update', '1', ...dataFlags)
    await fail(
      3,
      /no team 9/,
      'staff',
      'create',
      '--name',
      'X',
      '--role',
      'agent',
      '--teams',
      '1,9',
      ...dataFlags,
    )
    await fail(3, /no staff member 9/, 'staff', 'update', '9', '--reports', ...dataFlags)
    await fail(3, /no key 99/, 'keys', 'revoke', '99', ...dataFlags)
    await fail(2, /mutually exclusive/, 'keys', 'list', '--database-url', 'postgres://x', ...dataFlags)
    assert.equal((await runAdmin('staff')).exit, 2)
  })

  it('workspaces are isolated', async () => {
    const other = await succeed('workspaces', 'create', '--name', 'Other', ...dataFlags)
    await fail(2, /There are 2 workspaces/, 'staff', 'list', ...dataFlags)
    await fail(3, /no workspace 9/, 'staff', 'list', '--workspace', '9', ...dataFlags)
    assert.deepEqual((await succeed('staff', 'list', '--workspace', other.id, ...dataFlags)).data, [])
    await fail(
      3,
      /no staff member 1/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'all',
      '--workspace',
      other.id,
      ...dataFlags,
    )
    await fail(
      3,
      /no channel 1/,
      'channels',
      'update',
      '1',
      '--name',
      'Stolen',
      '--workspace',
      other.id,
      ...dataFlags,
    )
  })

  it('prints tables and records without --json; help lists all commands', async () => {
    assert.match((await runAdmin('teams', 'list', '--workspace', '1', ...dataFlags)).out, /^1\tSupport\t/)
    assert.match(
      (await runAdmin('staff', 'update', '1', '--enabled', '--workspace', '1', ...dataFlags)).out,
      /^id: 1\nname: Zoë\n/,
    )
    const help = (await runAdmin('--help')).out
    for (const command of [
      'workspaces create --name',
      'staff update <id>',
      'keys revoke <id>',
      'backup <file>',
      'move --to <url>',
    ])
      assert.ok(help.includes(`wcrm admin ${command}`), command)
  })

  it('the man page is up to date', () => {
    assert.equal(
      readFileSync(new URL('../../man/wcrm-admin.1', import.meta.url), 'utf8'),
      renderAdminManPage(),
    )
  })
})

it('works beside a running server on the embedded database', async () => {
  const folder = databases.newFolder()
  const storage = await databases.open(folder)
  const server = await serveStorage(storage, 'embedded')
  const dataFlags = ['--data', folder]
  const status = async (key: string) =>
    (await fetch(`${server.url}/v1/me`, { headers: { Authorization: `Bearer ${key}` } })).status
  try {
    await succeed('workspaces', 'create', '--name', 'Acme', ...dataFlags)
    await succeed('staff', 'create', '--name', 'Ann', '--role', 'owner', ...dataFlags)
    const { id, key } = await succeed('keys', 'create', '--staff', '1', '--scopes', 'all', ...dataFlags)
    assert.equal(await status(key), 200)
    const file = join(databases.home, 'beside.gz')
    assert.equal((await succeed('backup', file, ...dataFlags)).tables.api_keys, 1)
    await succeed('keys', 'revoke', id, ...dataFlags)
    const staleMs = await measureStaleness(async () => (await status(key)) !== 200)
    assert.ok(staleMs < 1000, `the key works ${staleMs} ms after it was revoked`)
    await fail(5, /A server is running on/, 'restore', file, ...dataFlags)
    await fail(5, /A server is running on/, 'move', '--to', 'postgres://127.0.0.1:1/none', ...dataFlags)
  } finally {
    await server.close()
    await storage.close()
  }
})
