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
  file: `server/sandbox/emulator/${file}.ts`,
  find,
  replace,
  test: 'tests/templates/corpus.test.ts',
  name: 'gives the verdict of the provider',
})

export const faults: readonly Fault[] = [
  inEmulator('template-checks', '!/^[a-z0-9_]+$/.test(name)', '!/^[A-Za-z0-9_]+$/.test(name)'),
  inEmulator('template-parts', 'const MAX_BODY_LENGTH = 1024', 'const MAX_BODY_LENGTH = 1025'),
  inEmulator('template-parts', 'countTextWords(text) < 2 * count + 1', 'false'),
  inEmulator('template-parts', 'texts.length !== count ||', ''),
  inEmulator('template-parts', 'texts.some((t) => containsWideSpace(t as string))', 'false'),
  inEmulator('template-texts', '/\\{\\{|\\}\\}/.test(piece)', 'false'),
  inEmulator('template-buttons', 'CHAT_HOSTS.includes(address.hostname)', 'false'),
  inEmulator('template-buttons', 'labels.has(label)', 'false'),
  inEmulator('template-parts', 'containsNewline(piece) || containsEmoji(piece)', 'containsNewline(piece)'),
  inEmulator('template-cards', 'kinds.size > 1', 'false'),
  inEmulator('template-checks', '.flatMap((card) => listBodies(card.components))', '.flatMap(() => [])'),
]
