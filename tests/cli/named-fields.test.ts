import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

describe('CLI: fields that flags name', () => {
  it('rows come in full where the output has a field that they lack otherwise', async () => {
    fake.responses = [{ body: { data: [{ id: '1' }], next_cursor: null } }]
    const search = ['contacts', 'search']
    const details = async (...words: string[]): Promise<unknown> => {
      fake.requests.length = 0
      assert.equal((await fake.wcrm([...search, ...words])).exit, 0)
      return fake.requests[0]!.input['detail']
    }
    // A line without a format has all columns, by their places.
    for (const words of [
      ['--columns', 'id,tags'],
      ['--template', '{email}'],
      ['--json=tags'],
      ['--csv'],
      ['--header'],
      ['--all'],
      [],
    ])
      assert.equal(await details(...words), 'full', words.join(' '))
    for (const words of [
      ['--columns', 'id,name'],
      ['--template', '{name}'],
      ['--json=id'],
      ['--json'],
      ['--ndjson'],
      ['--quiet'],
      ['--jq', '.data'],
    ])
      assert.equal(await details(...words), undefined, words.join(' '))
    assert.equal(await details('--columns', 'tags', '--detail', 'compact'), 'compact')
  })

  it('the next page may be printed in another form', async () => {
    const refused = { code: 'invalid_input', reason: 'cursor_invalid', title: 'No', detail: 'No' }
    const page = ['contacts', 'search', '--cursor', 'c1']
    const details = async (...words: string[]): Promise<unknown[]> => {
      fake.requests.length = 0
      fake.responses = [{ status: 400, body: refused }, { body: { data: [{ id: '1' }], next_cursor: null } }]
      await fake.wcrm([...page, ...words])
      return fake.requests.map(({ input }) => input['detail'])
    }
    assert.deepEqual(await details(), ['full', undefined])
    assert.deepEqual(await details('--all'), ['full', undefined])
    assert.deepEqual(await details('--json'), [undefined, 'full'])
    assert.deepEqual(await details('--detail', 'full'), ['full'])
    // A later page that is refused ends the command: no row is printed twice.
    fake.requests.length = 0
    fake.responses = [
      { body: { data: [{ id: '1' }], next_cursor: 'c2' } },
      { status: 400, body: refused },
      { body: { data: [{ id: '1' }], next_cursor: null } },
    ]
    const { stdout, exit } = await fake.wcrm(['contacts', 'search', '--all', '--columns', 'id'])
    assert.deepEqual([stdout, exit, fake.requests.length], ['1\n', 2, 2])
  })

  it('a flag of the command is no value of the flag before it', async () => {
    const note = ['conversations', 'note', '381', '--text']
    const { exit, stderr } = await fake.wcrm([...note, '--dry-run'])
    assert.deepEqual([exit, fake.requests.length], [2, 0])
    assert.match(stderr, /--text=--dry-run/)
    const search = ['contacts', 'search', '--query', 'Ada']
    for (const words of [
      [...search, '--template', '--all'],
      [...search, '--sort', '--utc'],
      ['contacts', 'update', '42', '--name', '--no-dnd'],
      ['events', 'list', '--since', '--csv'],
    ]) {
      const refused = await fake.wcrm(words)
      assert.deepEqual([refused.exit, fake.requests.length], [2, 0], words.join(' '))
      assert.match(refused.stderr, /has no value/, words.join(' '))
    }
    for (const words of [
      [...note, '-x'],
      [...note.slice(0, 3), '--text=--dry-run'],
    ])
      assert.equal((await fake.wcrm(words)).exit, 0)
    assert.deepEqual(
      fake.requests.map(({ input }) => input['text']),
      ['-x', '--dry-run'],
    )
  })

  it('an integer has digits alone', async () => {
    for (const text of ['5.0', ' 5', '1e2'])
      assert.equal((await fake.wcrm(['groups', 'list', '--limit', text])).exit, 2, text)
  })

  it('fields in the path may be flags too', async () => {
    for (const words of [
      ['ops', 'crm_get_contact', '--contact-id', '42'],
      ['contacts', 'get', '--contact-id=42', '--json'],
      ['--json', 'contacts', 'get', '--detail', 'ids', '--contact-id', '42'],
    ]) {
      fake.requests.length = 0
      assert.equal((await fake.wcrm(words)).exit, 0, words.join(' '))
      assert.equal(fake.requests[0]!.input['contact_id'], '42')
    }
    fake.requests.length = 0
    for (const [words, message] of [
      [['contacts', 'get', '42', '--contact-id', '43'], /too many arguments/],
      [['contacts', 'get', '--contact-id'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '--json'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '--utc'], /--contact-id has no value/],
      [['contacts', 'get', '--contact-id', '1', '--contact-id', '2'], /--contact-id is given twice/],
    ] as [string[], RegExp][]) {
      const { exit, stderr } = await fake.wcrm(words)
      assert.deepEqual([exit, fake.requests.length], [2, 0], words.join(' '))
      assert.match(stderr, message)
    }
  })
})
