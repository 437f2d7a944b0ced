import {
  excessLength,
  hasEmoji,
  hasNewline,
  hasVariable,
  maxLengths,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { noFindings, type LintFinding, finding, type LintRule, type LintSubject } from './rule.ts'
import { oneLine, suggest, withoutEmoji } from './text.ts'

/** Checks the footer's text, where one is allowed and present. */
const checkText =
  (find: (text: string) => LintFinding[]) =>
  ({ draft, isCode }: LintSubject): LintFinding[] => {
    const text = isCode || draft.carousel ? undefined : draft.footer?.text
    return text === undefined || isBlank(text) ? noFindings : find(text)
  }

const footer = (text: string) => ({ set: { footer: { text } } })

export const footerRules: readonly LintRule[] = [
  {
    id: 'footer.text_required',
    severity: 'error',
    source: 'guidelines',
    about: 'A footer has a text, except for `AUTHENTICATION`.',
    find: ({ draft, isCode }) =>
      !isCode && !draft.carousel && draft.footer && isBlank(draft.footer.text)
        ? finding('footer.text', 'The footer has no text.', 'Write footer.text, or leave out the footer.')
        : noFindings,
    breaks: { ...footer(''), at: 'footer.text' },
    passes: footer('Thank you'),
  },
  {
    id: 'footer.length',
    severity: 'error',
    source: 'spec',
    about: `At most ${maxLengths.footer} characters.`,
    find: checkText((text) => {
      const over = excessLength(text, maxLengths.footer)
      return over === 0
        ? noFindings
        : finding(
            'footer.text',
            `The footer has ${maxLengths.footer + over} characters; ` +
              `the provider accepts ${maxLengths.footer}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...footer('x'.repeat(61)), at: 'footer.text' },
    passes: footer('字'.repeat(60)),
  },
  {
    id: 'footer.variables',
    severity: 'error',
    source: 'spec',
    about: 'No variables.',
    find: checkText((text) =>
      hasVariable(text)
        ? finding(
            'footer.text',
            'The footer contains a variable.',
            suggest(
              oneLine(text.replaceAll(/\{\{[^{}]*\}\}/g, '').replaceAll('{{', '')),
              'Write words for it, or move it into the body.',
            ),
          )
        : noFindings,
    ),
    breaks: { ...footer('Thank you, {{1}}'), at: 'footer.text' },
    passes: footer('Thank you {friend}'),
  },
  {
    id: 'footer.newline',
    severity: 'error',
    source: 'error_list',
    about: 'No line breaks.',
    find: checkText((text) =>
      hasNewline(text)
        ? finding(
            'footer.text',
            'The footer has a line break.',
            suggest(oneLine(text), 'Put it on one line.'),
          )
        : noFindings,
    ),
    breaks: { ...footer('Thank\nyou'), at: 'footer.text' },
    passes: footer('Thank you'),
  },
  {
    id: 'footer.emoji',
    severity: 'error',
    source: 'error_list',
    about: 'No emoji.',
    find: checkText((text) =>
      hasEmoji(text)
        ? finding(
            'footer.text',
            'The footer contains an emoji.',
            suggest(withoutEmoji(text), 'Write words instead.'),
          )
        : noFindings,
    ),
    breaks: { ...footer('Thank you ☕'), at: 'footer.text' },
    passes: footer('Demo Coffee™ since 1999'),
  },
]
