import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const offline = { XDG_CONFIG_HOME: '/nonexistent' }

everyDatabase('wcrm api and wcrm ops', (server) => {
  it('api: bodies as they are, exit codes by status, headers, dry runs, confirmation', async () => {
    const workspace = await makeWorkspace(server())
    const env = { ...offline, WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key }
    const api = (words: string[], stdin = '') => runCli(['api', ...words], env, stdin)
    const dry = await api(['post', '/v1/contacts', '-f', 'phone=+15550100043', '--dry-run'])
    assert.equal(dry.exit, 0, dry.stderr)
    const made = await api(
      ['POST', 'v1/contacts', '--input', '-', '-f', 'name:=007'],
      '{"phone":"+15550100043"}',
    )
    const contact = JSON.parse(made.stdout) as { id: string }
    assert.equal(made.exit, 0, made.stderr)
    const kept = await api(['GET', `/v1/contacts/${contact.id}`])
    assert.equal((JSON.parse(kept.stdout) as { name: string }).name, '007')
    const list = await api(['GET', '/v1/contacts', '-f', 'limit=1', '-i'])
    assert.match(list.stdout, /^HTTP 200 [^]*content-type: application\/json[^]*\n\n\{"data":\[/)
    const deletion = ['DELETE', `/v1/contacts/${contact.id}`]
    assert.equal((await api(deletion)).exit, 6)
    const missing = await api(['GET', '/v1/contacts/999999', '--json'])
    assert.deepEqual([missing.exit, missing.stdout], [3, ''])
    assert.equal((JSON.parse(missing.stderr) as { code: string }).code, 'not_found')
    for (const [words, text] of [
      [['FETCH', '/v1/contacts'], /must be one of/],
      [['GET', 'https://elsewhere.example/v1/contacts'], /one of the server/],
      [['GET', '/v1/contacts', '-f', 'limit'], /field=value/],
      [['GET', '/v1/contacts', '--dry-run'], /no dry run/],
      [['POST', '/v1/contacts', '--input', '/nonexistent'], /Cannot read/],
    ] as const) {
      const { exit, stdout, stderr } = await api([...words])
      assert.deepEqual([exit, stdout], [2, ''], stderr)
      assert.match(stderr, text)
    }
  })

  it('api: the exit code is that of the command: partly done, invalid, waiting for a person', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const { id } = await run('crm_upsert_contact', { phone: '+15550100045' })
    const agent = await workspace.key(workspace.owner.staffId, { agent: true })
    for (const [key, words, input, expected] of [
      [workspace.owner.key, ['POST', '/v1/contacts/tag'], { contact_ids: [id, '999999'], tags: ['VIP'] }, 9],
      [workspace.owner.key, ['POST', '/v1/templates/lint'], { name: 'Not A Name' }, 2],
      [agent.key, ['DELETE', `/v1/contacts/${id}`, '--confirm', 'delete'], {}, 10],
    ] as const) {
      const env = { ...offline, WCRM_URL: server().url, WCRM_API_KEY: key }
      const { exit, stderr } = await runCli(['api', ...words, '--input', '-'], env, JSON.stringify(input))
      assert.equal(exit, expected, `${words.join(' ')}: ${stderr}`)
      assert.equal(/wcrm approvals get \d+ --wait/.test(stderr), expected === 10)
    }
  })

  it('ops: an operation by its name, with the flags of its command', async () => {
    const workspace = await makeWorkspace(server())
    const env = { ...offline, WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key }
    const ops = (words: string[], stdin = '') => runCli(['ops', ...words], env, stdin)
    const made = await ops(['crm_upsert_contact', '--input', '-', '--json'], '{"phone":"+15550100044"}')
    assert.equal(made.exit, 0, made.stderr)
    const { id } = JSON.parse(made.stdout) as { id: string }
    assert.equal((await ops(['crm_get_contact', '--input', JSON.stringify({ contact_id: id })])).exit, 0)
    const wrong = await ops(['get_contact'])
    assert.deepEqual([wrong.exit, /crm_get_contact/.test(wrong.stderr)], [2, true])
    const names = (await ops([])).stdout
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[0])
    assert.deepEqual(names.toSorted(), catalog.map(({ name }) => name).toSorted())
  })
})

describe('wcrm schema', { concurrency: true }, () => {
  it('every operation has one, as text and as JSON Schema, of input and output', async () => {
    for (const { name } of catalog)
      for (const flags of [[], ['--json'], ['--output']]) {
        const { exit, stdout, stderr } = await runCli(['schema', name, ...flags], offline)
        assert.deepEqual([exit, stderr], [0, ''], name)
        assert.doesNotMatch(stdout, /undefined|\[object/, name)
        if (flags[0] === '--json') assert.equal((JSON.parse(stdout) as { type: string }).type, 'object')
      }
  })

  it('a template: nested fields with values, limits and what is required; a field alone', async () => {
    const { stdout } = await runCli(['schema', 'templates', 'create'], offline)
    for (const line of [
      / {2}template: object, required/,
      / {4}name: string, at most 1000 characters, required\n {8}Lowercase letters/,
      / {4}buttons: list of object, at most 30 items\n/,
      / {6}type: QUICK_REPLY \| URL \| PHONE_NUMBER \| .*, required\n/,
      /Example:\n\{\n {2}"template": \{\n/,
    ])
      assert.match(stdout, line)
    const field = await runCli(['schema', 'messaging_create_template', 'template.buttons.url'], offline)
    assert.match(field.stdout, /template\.buttons\.url: string, at most 4000 characters\nhttps;/)
    const wrong = await runCli(['schema', 'messaging_create_template', 'template.button'], offline)
    assert.deepEqual([wrong.exit, /There are: .*buttons/.test(wrong.stderr)], [3, true])
  })
})
