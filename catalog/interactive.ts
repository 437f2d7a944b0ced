import { z } from 'zod'
import { VisibleName } from './fields.ts'

/* What a reply offers to tap, within the bounds of the provider (docs/provider.md). */

const Line = (max: number, what: string) =>
  VisibleName(max)
    .regex(/^\P{Cc}*$/u, 'must be one line')
    .describe(`${what}, at most ${max} characters.`)
const TapId = (max: number) =>
  VisibleName(max)
    .optional()
    .describe(`What the tap answers, at most ${max} characters; its title if absent.`)

type Choice = { title: string; id?: string | undefined }
/** What a tap on a button or row answers. */
export const tapId = ({ id, title }: Choice): string => id ?? title
const areDistinct = (values: readonly string[]): boolean => new Set(values).size === values.length

const Button = z.strictObject({ title: Line(20, 'Its text'), id: TapId(256) })
const Row = z.strictObject({
  title: Line(24, 'Its title'),
  id: TapId(200),
  description: Line(72, 'Its description').optional(),
  section: Line(24, 'The section it is in; all rows or none').optional(),
})

const duplicate = (what: string) => ({
  error: `must have different ${what}`,
  params: { code: 'duplicate', fix: 'Give each its own; without an id, the title is it.' },
})
const around = {
  header: Line(60, 'Line above the text').optional(),
  footer: Line(60, 'Line below the text').optional(),
}
const offers = [
  z
    .strictObject({
      kind: z.literal('buttons').describe('Reply buttons.'),
      buttons: z
        .array(Button)
        .min(1)
        .max(3)
        .refine(
          (given) => areDistinct(given.map(tapId)) && areDistinct(given.map(({ title }) => title)),
          duplicate('titles and ids'),
        )
        .describe('1 to 3 buttons.'),
      ...around,
    })
    .meta({ id: 'OfferedButtons' }),
  z
    .strictObject({
      kind: z.literal('rows').describe('A list to choose from.'),
      button: Line(20, 'Text of the button that opens the list'),
      rows: z
        .array(Row)
        .min(1)
        .max(10)
        .refine((given) => areDistinct(given.map(tapId)), duplicate('ids'))
        .refine((given) => new Set(given.map(({ section }) => section === undefined)).size < 2, {
          error: 'must all have a section, or none',
          params: { code: 'required', fix: 'Name the section of each row.' },
        })
        .describe('1 to 10 rows, in order.'),
      ...around,
    })
    .meta({ id: 'OfferedRows' }),
  z
    .strictObject({
      kind: z.literal('link').describe('A button that opens a page.'),
      title: Line(20, 'Its text'),
      url: z
        .url({ protocol: /^https?$/ })
        .max(2000)
        .describe('The page.'),
      ...around,
    })
    .meta({ id: 'OfferedLink' }),
  z
    .strictObject({ kind: z.literal('location_request').describe('A button to share a location.') })
    .meta({ id: 'OfferedLocationRequest' }),
] as const

/** What a reply offers to tap: also kinds of the `content` of a message. */
export const Interactive = z.discriminatedUnion('kind', offers).meta({ id: 'Interactive' })
export type Interactive = z.output<typeof Interactive>

export const isOffer = (content: { kind: string } | null | undefined): content is Interactive =>
  offers.some(({ shape }) => shape.kind.value === content?.kind)

/** Most characters of the text above what is tapped. */
export const maxTextWith = ({ kind }: Pick<Interactive, 'kind'>): number => (kind === 'rows' ? 4096 : 1024)

const describeRow = ({ title, description, section }: z.output<typeof Row>): string =>
  [section && `${section}:`, title, description && `(${description})`].filter(Boolean).join(' ')

/** What can be tapped, and the lines around it, as staff read them. */
export const describeOffer = (offer: Interactive): string[] => {
  if (offer.kind === 'location_request') return ['[Send location]']
  const taps =
    offer.kind === 'link'
      ? [`[${offer.title}] ${offer.url}`]
      : offer.kind === 'buttons'
        ? offer.buttons.map(({ title }) => `[${title}]`)
        : [`[${offer.button}]`, ...offer.rows.map((row) => `- ${describeRow(row)}`)]
  return [
    ...(offer.header === undefined ? [] : [`Header: ${offer.header}`]),
    ...taps,
    ...(offer.footer === undefined ? [] : [`Footer: ${offer.footer}`]),
  ]
}
