import { showHidden } from '../../../../catalog/text.ts'
import { isObject } from '../../../../catalog/values.ts'
import { line } from './summary-line.ts'

/*
 * What a person decides on before a template goes to many: how many get it, who does not, the text, and the messages of
 * its dry run.
 */

type Json = Record<string, unknown>
type LeftOut = { reason: string; count: number }

const toList = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : [])

const describeHours = (hours: unknown): string | undefined =>
  isObject(hours)
    ? `${String(hours.from)} to ${String(hours.to)}${hours.days ? `, ${toList(hours.days).join(', ')}` : ''}`
    : undefined

/** Returns the lines of a broadcast that is to be sent. `output`: of its dry run, as the reader may see it. */
export const describeBulk = (input: Json, output: Json): string[] => {
  const template = input.template as { name: string; language: string }
  const leftOut = toList<LeftOut>(output.left_out)
  const texts = toList<{ text: string }>(output.previews).map(({ text }) => text)
  const [first, ...others] = new Set(texts)
  const countries = toList<{ country: string | null; count: number }>(output.countries)
  return [
    ...line('Template', `${template.name}, ${template.language}`),
    ...line('Text', output.text),
    ...toList<{ part: string; text: string }>(output.parts).flatMap(({ part, text }) =>
      line(showHidden(part), text),
    ),
    ...line('First message', first),
    ...others.flatMap((text) => line('Another message', text)),
    ...(others.length > 0 ? ['Contacts whose values change from now on get no message.'] : []),
    ...line('Hours of the recipients', describeHours(input.hours)),
    ...line(
      'Countries',
      countries.map(({ country, count }) => `${country ?? 'unknown'} ${count}`).join(', '),
    ),
    ...line(
      'Left out',
      leftOut.map(({ reason, count }) => `${count} ${reason.replaceAll('_', ' ')}`).join(', '),
    ),
    `Recipients: ${String(output.recipients)}`,
  ]
}
