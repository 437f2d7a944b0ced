/** A fault in the product: `find`, which its file contains once, replaced, and the test that finds it. */
export type Fault = {
  file: string
  find: string
  replace: string
  test: string
  /** A pattern for the names of the tests that find it, where the others of the file take long. */
  name?: string
}

const inEmulator = (file: string, find: string, replace: string): Fault => ({
  file: `packages/sandbox/emulator/${file}.ts`,
  find,
  replace,
  test: 'tests/templates/corpus.test.ts',
  name: 'gives the verdict of the provider',
})

/** The sandbox and lint share them: only the provider's verdicts can tell. */
const inRules = (find: string, replace: string): Fault => ({
  file: 'catalog/templates/rules.ts',
  find,
  replace,
  test: 'tests/templates/corpus.test.ts',
  name: 'gives the verdict of the provider',
})

const inLint = (file: string, find: string, replace: string): Fault => ({
  file: `server/templates/lint/${file}.ts`,
  find,
  replace,
  test: 'tests/templates/agreement.test.ts',
  name: 'agree on 10,000',
})

export const faults: readonly Fault[] = [
  inRules('TEMPLATE_NAME = /^[a-z0-9_]+$/', 'TEMPLATE_NAME = /^[A-Za-z0-9_]+$/'),
  inRules('  body: 1024', '  body: 1025'),
  inRules('2 * variables + 1', '0'),
  inEmulator('template-parts', 'texts.length !== count ||', ''),
  inEmulator('template-parts', 'texts.some((t) => findBadSpace(t as string) !== undefined)', 'false'),
  inEmulator('template-texts', '/\\{\\{|\\}\\}/.test(piece)', 'false'),
  inEmulator('template-buttons', 'chatHosts.includes(address.hostname)', 'false'),
  inEmulator('template-buttons', 'labels.has(label)', 'false'),
  inEmulator('template-parts', 'hasNewline(piece) || hasEmoji(piece)', 'hasNewline(piece)'),
  inEmulator('template-cards', 'kinds.size > 1', 'false'),
  inEmulator('template-checks', '.flatMap((card) => listBodies(card.components))', '.flatMap(() => [])'),
  {
    file: 'server/filters/parse-node.ts',
    find: 'if (leaf.phone && hasHiddenPhones(state.ctx.actor))',
    replace: 'if (false)',
    test: 'tests/filters/security.test.ts',
    name: 'every filter on phone numbers is refused',
  },
  {
    file: 'server/filters/grammar.ts',
    find: "country: { kind: 'country', optional: true, phone: true,",
    replace: "country: { kind: 'country', optional: true,",
    test: 'tests/filters/security.test.ts',
    name: 'every filter on phone numbers is refused',
  },
  {
    file: 'server/filters/parse-node.ts',
    find: "if (field.type === 'phone' && hasHiddenPhones(actor))",
    replace: 'if (false)',
    test: 'tests/filters/security.test.ts',
    name: 'every filter on phone numbers is refused',
  },
  {
    file: 'server/filters/parse-node.ts',
    find: "if (field === 'email' && state.fields.some(",
    replace: "if (field === 'none' && state.fields.some(",
    test: 'tests/filters/security.test.ts',
    name: 'a filter on email is refused',
  },
  {
    file: 'server/core/dry-run.ts',
    find: 'await tx.rollback().execute()',
    replace: 'await tx.commit().execute()',
    test: 'tests/core/dry-run-doors.test.ts',
    name: 'changes nothing, on every door',
  },
  {
    file: 'storage/contacts/contacts.ts',
    find: 'on conflict ${externalId === null ? lineIndex : sql``} do nothing returning id',
    replace: 'returning id',
    test: 'tests/contacts/contacts.test.ts',
    name: 'concurrent upserts of one phone',
  },
  {
    file: 'storage/conversations/conversations.ts',
    find: 'where v.workspace_id = ${workspaceId} and v.id = ${toStorableId(id)} for update of v',
    replace: 'where v.id = ${toStorableId(id)} for update of v',
    test: 'tests/core/isolation.test.ts',
    name: 'inbox_close_conversation neither shows',
  },
  {
    file: 'cli/report-views/summary-report.ts',
    find: 'const LABEL_WIDTH = 18',
    replace: 'const LABEL_WIDTH = 17',
    test: 'tests/cli/screens.test.ts',
    name: '80 columns',
  },
  inLint('buttons', 'areRepliesTogether(all.map(', 'true || areRepliesTogether(all.map('),
  inLint('button-values', 'isHttpsUrl(example) && example.startsWith(fixed) &&', 'isHttpsUrl(example) &&'),
  inLint('button-values', ': !/\\s/.test(example),', ': true,'),
  inLint('button-values', '!BUTTON_PHONE.test(given!)', 'false'),
  inLint('button-values', 'countCharacters(given!) <= maxLengths.buttonPhone', 'true'),
  inLint('urls', '\\S*$/i.test(text)', '.*$/i.test(text)'),
  inLint('urls', "url!.slice(at) === '{{1}}'", "url!.slice(at).startsWith('{{1}}')"),
  inLint('carousel', 'length >= cardCount.min && length <= cardCount.max', 'length >= cardCount.min'),
  inLint('carousel', 'format === first.header_format', 'true'),
  inLint('authentication', 'minutes >= min &&', 'minutes >= 0 &&'),
  inLint('authentication', '(body.examples ?? []).length > 0', 'false'),
  inLint('authentication', 'buttons.length !== 1', 'buttons.length < 1'),
  {
    file: 'server/core/cursors.ts',
    find: 'const { cursor: _cursor, limit: _limit, ...filters } = input',
    replace: 'const filters = {}',
    test: 'tests/core/cursors.test.ts',
    name: 'a cursor works only with the same list',
  },
  {
    file: 'server/core/cursors.ts',
    find: '${actor.staff.id} ${operation}',
    replace: '${operation}',
    test: 'tests/core/cursors.test.ts',
    name: 'a cursor works with any key of its owner',
  },
  {
    file: 'server/visibility/phones.ts',
    find: '(text !== null && hasHiddenPhones(actor) ? maskNumbers(text) : text) as T',
    replace: 'text',
    test: 'tests/visibility/phones.test.ts',
    name: 'messages of the provider name no number',
  },
  {
    file: 'server/templates/lint/button-values.ts',
    find: 'chatHosts.includes(host)',
    replace: "host === 'wa.me'",
    test: 'tests/templates/lint.test.ts',
  },
  {
    file: 'server/filters/saved.ts',
    find: 'if (own) throw createCycleProblem(own.path)',
    replace: '',
    test: 'tests/filters/saved-filter-references.test.ts',
    name: 'may refer to each other',
  },
  {
    file: 'server/filters/saved.ts',
    find: "if (sizes.get(id) === 'open') throw createCycleProblem(named)",
    replace: '',
    test: 'tests/filters/saved-filter-references.test.ts',
    name: 'may refer to each other',
  },
  {
    file: 'storage/filters/saved-filters.ts',
    find: ".where('workspace_id', '=', workspaceId)\n    .where('id', '=', sql<string>`any(",
    replace: ".where('id', '=', sql<string>`any(",
    test: 'tests/filters/saved-filter-rules.test.ts',
    name: 'one of another workspace does not exist',
  },
  {
    file: 'server/filters/saved.ts',
    find: "if (row.kind !== 'contact') {",
    replace: 'if (false) {',
    test: 'tests/filters/saved-filter-rules.test.ts',
    name: 'a conversation filter is not accepted',
  },
  {
    file: 'storage/sandbox/messages.ts',
    find: ".where('reference', '=', reference)",
    replace: '',
    test: 'tests/sandbox/adapter.test.ts',
    name: 'messages: send, find',
  },
  {
    file: 'storage/sandbox/links.ts',
    find: "query = query.where('seq', '<', by.after)",
    replace: "query = query.where('seq', '<=', by.after)",
    test: 'tests/sandbox/adapter.test.ts',
    name: 'short links: create',
  },
  {
    file: 'packages/sandbox/emulator/links.ts',
    find: 'if (!(await deleteSandboxLink(call.db, number.id, call.path.code!))) throw unknownLink()',
    replace: '',
    test: 'tests/sandbox/adapter.test.ts',
    name: 'short links: create',
  },
]
